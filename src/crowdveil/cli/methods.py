"""`crowdveil methods [NAME]`: list the methods, or describe one."""

from __future__ import annotations

import json

import click

from crowdveil.model.flows import Flows
from crowdveil.params import rows
from crowdveil.registry import all_methods, find_method


@click.command()
@click.argument("name", required=False)
@click.option("--schema", is_flag=True, help="Print the JSON schema of the parameters.")
def command(name: str | None, schema: bool) -> None:
    """List the methods, or describe one.

    \b
    Examples:
      crowdveil methods
      crowdveil methods suppression
      crowdveil methods suppression --schema
    """
    if name is None:
        width = max(len(n) for n in all_methods())
        for method in all_methods().values():
            takes = "flows" if method.takes is Flows else "trajectories"
            click.echo(f"{method.name:<{width}}  {takes:<12}  {method.status:<9}  {method.summary}")
        return
    method = find_method(name)
    if schema:
        click.echo(json.dumps(method.params.model_json_schema(), indent=2))
        return
    click.echo(f"{method.name} ({method.status})\n\n{method.doc.strip()}\n\nParameters\n----------")
    for row in rows(method.params):
        limits = "; ".join(x for x in (row.kind, "|".join(row.choices), row.unit, row.bounds) if x)
        click.echo(f"{row.name} = {row.default}  ({limits})\n    {row.help}")
