"""A run whose data lies on a cluster and stays there: read, made, written and checked in parts; only figures are gathered.

    rows ──▶ keyed rows ──▶ parts ──▶ method, table, promises, attacks ──▶ rows of the release, and what is told of the part
    trips.py                steps.py                                       gathering.py     running.py     verifying.py

A part is a set of whole time steps. What is done with one is what a run on one machine does with all of them: the same reader
of rows, `to_flows`, `Method.run`, the tables of a release, the checkers. Nothing that is chosen may depend on the part: what is
chosen from all of the data is gathered before (zones, visited tiles, the list of steps) and sent to every part; what cannot be is
said by `Method.together`.

A new kind of partition, such as one of trajectories
----------------------------------------------------
1. A reader, as `TripReader`: a function over Arrow batches that gives rows with the key of their part, and notes as rows of
   their own. It is sent to executors whole, so it holds plain values and frozen models alone.
2. A part, as `StepsPart`: a function from the table of a part to a table in the schema `outcome_schema(...)`: rows of the
   release (kind "row"), its areas ("area") and one line of JSON that tells what came of it ("told").
3. Gathering, as `Gathered`: the lines of all parts put together to findings, costs, facts and tables.
4. A branch in `running.run` for what the method takes, and `together=apart` in the records of methods that can be done so.
"""
