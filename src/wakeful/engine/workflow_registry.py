"""Workflows of a store: what nodes may be, what was saved, and the check between the two.

A graph is validated before it is saved and again when it is to be run: tools change, and a graph that was right may not
be any more. What is saved never changes; saving makes a new revision.
"""

import builtins
from collections.abc import Iterable

from wakeful.contracts.errors import InvalidWorkflow, WorkflowNotFound
from wakeful.contracts.workflows import (
    GraphProblem,
    NodeKind,
    NodeType,
    SavedWorkflow,
    WorkflowGraph,
)
from wakeful.decisions.workflows.graph_reader import read_graph
from wakeful.decisions.workflows.validation import Types, by_ref, validate
from wakeful.ports import Clock, Ids, Store, WorkflowRow

SHORTEST_ID = 4
"""Letters that are enough of an id to be looked for."""
MAX_BUILT_NAME = 120
"""So much of a name is kept when a number is put behind it."""


class WorkflowRegistry:
    """The node types that are there, and the workflows of a store."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, types: Iterable[NodeType] = ()) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self.types: Types = by_ref(types)

    def list_node_types(self) -> tuple[NodeType, ...]:
        """Tools with their schemas, agents, and the approval."""
        return tuple(self.types.values())

    def get_node_type(self, ref: str, kind: NodeKind | None = None) -> NodeType | None:
        """What a node may refer to by this name; `kind` where a tool and an agent share one. None: nothing."""
        found = (each for each in self.types.values() if each.ref == ref and kind in (None, each.kind))
        return next(found, None)

    def problems(self, graph: WorkflowGraph) -> tuple[GraphProblem, ...]:
        """What is wrong with a graph, here and now."""
        return validate(graph, self.types)

    def check(self, graph: WorkflowGraph) -> None:
        """Raises InvalidWorkflow, with everything that is wrong."""
        problems = self.problems(graph)
        if problems:
            what = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
            raise InvalidWorkflow(f"the workflow {graph.name!r} has {what}", problems)

    async def save(self, graph: WorkflowGraph) -> str:
        """Keep a graph as a new revision; its workflow's id. Raises InvalidWorkflow, and then nothing is kept.

        A graph with an id is a revision of that workflow; one without, of the workflow of its name, or a new one.
        """
        return (await self.keep(graph)).workflow_id

    async def keep(self, graph: WorkflowGraph, *, key: str | None = None) -> SavedWorkflow:
        """The same, with the revision it got. What was kept under this key before is given back."""
        self.check(graph)
        row = await self._store.save_workflow(
            graph.name,
            graph.model_copy(update={"id": None}).model_dump_json(exclude_none=True),
            new_id=self._ids.new("wf"),
            created_at=self._clock.now(),
            workflow_id=graph.id,
            key=key,
        )
        return _saved(row)

    async def keep_built(self, graph: WorkflowGraph, *, editing: str | None, key: str) -> SavedWorkflow:
        """Keep what a model built: as a revision of the workflow that is being edited, or as a new one.

        A model gives names, and a name alone does not let it put its graph in the place of somebody else's workflow:
        it gets another one then.
        """
        taken = {row.name: row.workflow_id for row in await self._store.workflows()}
        name, number = graph.name, 1
        while taken.get(name, editing) != editing:
            number += 1
            name = f"{graph.name[:MAX_BUILT_NAME]} ({number})"
        return await self.keep(graph.model_copy(update={"id": None, "name": name}), key=key)

    async def get(self, workflow_id: str, revision: int | None = None) -> SavedWorkflow:
        """A revision, or the newest. Raises WorkflowNotFound."""
        row = await self._store.workflow(workflow_id, revision)
        if row is None:
            raise await self._missing(workflow_id, revision)
        return _saved(row)

    async def find(self, name: str, revision: int | None = None) -> SavedWorkflow:
        """A workflow as a person names it: by its name, its id, or enough of its id. Raises WorkflowNotFound."""
        rows = await self._store.workflows()
        whole = [row for row in rows if row.name == name] or [row for row in rows if row.workflow_id == name]
        fitting = whole or [row for row in rows if len(name) >= SHORTEST_ID and row.workflow_id.startswith(name)]
        if len(fitting) > 1:
            ids = "\n".join(f"  {row.workflow_id}  {row.name}" for row in fitting)
            raise WorkflowNotFound(f"{name!r} matches {len(fitting)} workflows", f"Give more of the id:\n{ids}")
        return await self.get(fitting[0].workflow_id if fitting else name, revision)

    async def list(self) -> builtins.list[SavedWorkflow]:
        """The newest revision of each, by name."""
        return [_saved(row) for row in await self._store.workflows()]

    async def delete(self, workflow_id: str) -> None:
        """Forget every revision. Raises WorkflowNotFound. What runs has its own copy."""
        if not await self._store.delete_workflow(workflow_id):
            raise await self._missing(workflow_id, None)

    async def _missing(self, named: str, revision: int | None) -> WorkflowNotFound:
        newest = await self._store.workflow(named)
        if newest is not None:
            there = f"its newest is {newest.revision}"
            return WorkflowNotFound(f"the workflow {newest.name!r} has no revision {revision}", there)
        names = [row.name for row in await self._store.workflows()]
        there = f"There are: {', '.join(names)}" if names else "None is saved in this store."
        return WorkflowNotFound(f"there is no workflow {named!r} in {self._store.location}", there)


def _saved(row: WorkflowRow) -> SavedWorkflow:
    graph = read_graph(row.graph)
    if not isinstance(graph, WorkflowGraph):
        raise InvalidWorkflow(f"revision {row.revision} of the workflow {row.name!r} cannot be read", graph)
    return SavedWorkflow(
        workflow_id=row.workflow_id,
        revision=row.revision,
        name=row.name,
        graph=graph.model_copy(update={"id": row.workflow_id}),
        created_at=row.created_at,
    )
