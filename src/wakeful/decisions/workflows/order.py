"""The order of a graph: what depends on what, what will never begin, and where it bites its own tail."""

from collections.abc import Collection, Iterable, Mapping

from wakeful.contracts.workflows import INPUT, NodeStatus, WorkflowGraph


def dependencies(graph: WorkflowGraph) -> dict[str, tuple[str, ...]]:
    """For each node, in the order of the graph, the nodes it takes something from. Inputs of the workflow are none.

    Edges whose ends are not in the graph are left out.
    """
    found: dict[str, dict[str, None]] = {node.id: {} for node in graph.nodes}
    for edge in graph.edges:
        if edge.source != INPUT and edge.source in found and edge.target in found:
            found[edge.target][edge.source] = None
    return {node: tuple(sources) for node, sources in found.items()}


def topological(graph: WorkflowGraph) -> tuple[str, ...]:
    """Every node after those it depends on; otherwise as the graph has them. Raises ValueError on a cycle."""
    waiting = dependencies(graph)
    order: dict[str, None] = {}
    while waiting:
        free = next((node for node, needs in waiting.items() if all(need in order for need in needs)), None)
        if free is None:
            raise ValueError(f"no order: {', '.join(waiting)} depend on each other")
        order[free] = None
        del waiting[free]
    return tuple(order)


def doomed(graph: WorkflowGraph, done: Mapping[str, NodeStatus]) -> dict[str, str]:
    """The nodes that never will begin, each with a dependency that did not succeed; in topological order."""
    needs, lost = dependencies(graph), dict[str, str]()
    for node in topological(graph):
        if node in done:
            continue
        cause = next((need for need in needs[node] if need in lost or done.get(need, "succeeded") != "succeeded"), None)
        if cause is not None:
            lost[node] = cause
    return lost


def cycles(graph: WorkflowGraph) -> tuple[tuple[str, ...], ...]:
    """One cycle of each knot of nodes that depend on each other, in the direction of its edges."""
    needs = dependencies(graph)
    reach = {node: _reachable(node, needs) for node in needs}
    found: list[tuple[str, ...]] = []
    seen: set[str] = set()
    for node in needs:
        if node in reach[node] and node not in seen:
            knot = [other for other in needs if other in reach[node] and node in reach[other]]
            seen.update(knot)
            found.append(_around(node, needs, knot))
    return tuple(found)


def _reachable(start: str, needs: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(needs[start])
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(needs[node])
    return found


def _around(start: str, needs: Mapping[str, Iterable[str]], knot: Collection[str]) -> tuple[str, ...]:
    """The shortest way from a node back to itself, told in the direction of the edges."""
    before: dict[str, str] = {}
    waiting = [start]
    for node in waiting:
        for need in needs[node]:
            if need == start:
                path = [node]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return (start, *path[:-1])
            if need in knot and need not in before:
                before[need] = node
                waiting.append(need)
    raise AssertionError(f"{start} does not depend on itself")
