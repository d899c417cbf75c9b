"""Use Flower as the transport: it carries signed bytes between the coordinator and the parties' daemons."""
