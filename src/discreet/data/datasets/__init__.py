"""The datasets known by name: what they hold, where they can be had, and the invented ones."""
