"""Turn trips into OD flows, or convert flows to another format."""

from __future__ import annotations

from pathlib import Path

from crowdveil.io.atomic import check_file
from crowdveil.io.tables import check_ending, write_flows
from crowdveil.model.flows import Flows
from crowdveil.reading import FlowReading, read
from crowdveil.verbs.base import FLOWS, OF_METHODS, InputFile, Outcome, Output, Task, Verb, with_examples


def _run(task: Task) -> Outcome:
    target = Path(str(task.output))
    check_ending(target, ".omx")
    check_file(target.absolute(), overwrite=task.overwrite)
    task.stage("grouping")
    flows: Flows = read(Flows, task.files["data"], FlowReading.checked(task.of(FlowReading)), task.notes)
    write_flows(flows, target, overwrite=task.overwrite)
    people = ", people counted" if flows.k_unit == "people" else ""
    size = f"{len(flows):,} flows, {flows.total:,} trips, {flows.steps:,} time steps, {len(flows.zones):,} zones"
    return Outcome(task.notes, [f"{size}{people}; not anonymized"])


VERB = Verb(
    verb="flows",
    summary="Turn trips into OD flows, or convert flows to another format.",
    run=_run,
    options=lambda name: (FlowReading,),
    files=lambda name: (InputFile("data", FLOWS, "TRIPS_OR_FLOWS"),),
    output=lambda name: Output("File to write: .csv, .parquet or .omx.", required=True),
    hidden=lambda name: OF_METHODS,
    help=lambda name: with_examples(
        "Turn trips into OD flows by time step, or convert flows to another format. Nothing is anonymized.",
        "flows",
        "trips.parquet --zones zones.geojson --step 1h --tz America/New_York -o flows.parquet",
        "taxi.parquet --zones grid:500m -o flows.csv",
        "trips.parquet --zones zones.geojson --step 1h --fold 2w -o two-weeks.parquet",
        "flows.csv -o flows.omx",
    ),
)
