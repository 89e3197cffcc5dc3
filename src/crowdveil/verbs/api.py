"""The public names: functions of verbs, readers, writers, and the model."""

from crowdveil.verbs.analyze import (
    land_use as land_use,
    profiles as profiles,
    quadtree_heatmap as quadtree_heatmap,
    reconstruct as reconstruct,
    topics as topics,
)
from crowdveil.verbs.attack import attack as attack
from crowdveil.verbs.compare import compare as compare
from crowdveil.verbs.derive import derive as derive
from crowdveil.verbs.describe import describe as describe
from crowdveil.verbs.ledger import (
    ledger_add as ledger_add,
    ledger_check as ledger_check,
    ledger_explain as ledger_explain,
    ledger_init as ledger_init,
    ledger_list as ledger_list,
    ledger_retire as ledger_retire,
    ledger_verify as ledger_verify,
)
from crowdveil.verbs.measure import measure as measure
from crowdveil.verbs.queries import measure_queries as measure_queries
from crowdveil.verbs.anonymize import anonymize as anonymize, list_methods as list_methods
from crowdveil.verbs.plot import plot as plot
from crowdveil.verbs.report import write_report as write_report
from crowdveil.verbs.trips import trips as trips
from crowdveil.verbs.verify import verify as verify
from crowdveil.errors import CrowdveilError as CrowdveilError, CrowdveilWarning as CrowdveilWarning
from crowdveil.io.flows import read_flows as read_flows, read_trips as read_trips, trips_to_flows as trips_to_flows
from crowdveil.io.geojson import write_zones as write_zones
from crowdveil.io.hierarchy import build_hierarchy as build_hierarchy
from crowdveil.io.tables import write_flows as write_flows, write_trajectories as write_trajectories
from crowdveil.io.trajectories import read_trajectories as read_trajectories
from crowdveil.io.zones import read_voronoi as read_voronoi, read_zones as read_zones
from crowdveil.model.flows import Flows as Flows
from crowdveil.model.hierarchy import Hierarchy as Hierarchy
from crowdveil.model.release import FlowRelease as FlowRelease, TrajectoryRelease as TrajectoryRelease
from crowdveil.model.trajectories import Trajectories as Trajectories
from crowdveil.model.trips import Trips as Trips
from crowdveil.model.zones import Zones as Zones
from crowdveil.registry import (
    all_analyses as all_analyses,
    all_attacks as all_attacks,
    all_measures as all_measures,
    all_methods as all_methods,
)
from crowdveil.run.filters import filter_trajectories as filter_trajectories
