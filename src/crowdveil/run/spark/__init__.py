"""A run whose data lies on a cluster and stays there: read, made, written and checked in parts; only figures are gathered.

    rows ──▶ packs ──▶ parts ──▶ method, table, guarantees, attacks ──▶ rows of the release, and what is told of the part
    trips.py           steps.py                                       gathering.py     running.py     verifying.py

Rows travel in packs (`crowdveil.engine.packing`): all rows of a piece that have one key, here a time step, are one value of
bytes, which only Python opens. A release beside its original goes the same way: beside.py and measuring.py.

A part is a set of whole time steps. What is done with one is what a run on one machine does with all of them: the same reader
of rows, `to_flows`, `Method.run`, the tables of a release, the checkers. Nothing that is chosen may depend on the part: what is
chosen from all of the data is gathered before (zones, visited tiles, the list of steps) and sent to every part; what cannot be is
said by `Method.partitioning`.

Trajectories go the same way: points.py, tracks.py, track_running.py and track_verifying.py. A part is a set of trajectories that
are done together; which these are is planned in one task from their outlines (`Plan`). Points and trajectories keep the order of
the rows in the input, since that is what a run on one machine goes by where times or distances are equal. New numbers are given
once all parts are made, and files are sorted by them.

A new kind of partition
-----------------------
1. A reader, as `TripReader`: a function over Arrow batches that gives packs of rows with a key that parts are made of, and notes
   as rows of their own. It is sent to executors whole, so it holds plain values and frozen models alone.
2. A part, as `StepsPart`: a function from the table of a part to a table in the schema `outcome_schema(...)`: rows of the
   release (kind "row"), its areas ("area") and one line of JSON that tells what came of it ("told").
3. Gathering, as `Gathered`: the lines of all parts put together to findings, costs, facts and tables.
4. A way through, as `track_running.run`, and `partitioning=INDEPENDENT` in the records of methods that can be done so.
"""
