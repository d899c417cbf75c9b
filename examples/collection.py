"""Collection: ratings are made private on each device; the collector never sees one."""

import discreet
from discreet.collect import BoundedLaplace, Campaign, Collector, Device

films = [f"film {k}" for k in range(20)]
asked = Campaign(
    name="films",
    mechanism=BoundedLaplace(epsilon=2.0, low=1, high=5, points=241),
    catalog=discreet.Vocabulary.of(films),
    max_reports=10,
    step=1.0,
)
on_the_wire = asked.to_bytes()

collector = Collector(asked)
for person in range(300):
    device = Device(Campaign.from_bytes(on_the_wire), budget=10.0)
    mine = {films[(person + k) % 20]: float(1 + (person + k) % 5) for k in range(5)}
    collector.receive(device.message(mine))

collected = collector.collected()
means = collected.item_means()
print(f"{collector.kept} reports; {films[3]} has about {means.means[3]:.2f} stars")
model = discreet.LocalChannel(epsilon=2.0).fit_reports(collected)  # the devices have paid already
print(model.guarantee.sentence())
