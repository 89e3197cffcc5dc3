from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.kernels.trees import collapse, post_order

# The first call may compile.
unhurried = settings(deadline=None)


def plain_post_order(parent: list[int]) -> list[int]:
    def visit(node: int) -> list[int]:
        below = [i for i in range(len(parent)) if parent[i] == node]
        return [i for child in below for i in visit(child)] + [node]

    return visit(parent.index(-1))


@st.composite
def rooted(draw: st.DrawFn, circles: bool = False) -> list[int]:
    """Parents of nodes in any order, -1 once; with `circles`, some nodes may never reach the root."""
    n = draw(st.integers(1, 12))
    number = draw(st.permutations(range(n)))
    parent = [-1] * n
    for i in range(1, n):
        parent[number[i]] = number[draw(st.integers(0, n - 1 if circles else i - 1))]
    return parent


@unhurried
@given(rooted())
def test_post_order_is_that_of_plain_recursion(parent: list[int]) -> None:
    assert post_order(np.array(parent, np.int32)).tolist() == plain_post_order(parent)


@unhurried
@given(rooted(circles=True))
def test_post_order_reaches_exactly_the_nodes_below_the_root(parent: list[int]) -> None:
    reached = set(post_order(np.array(parent, np.int32)).tolist())
    for node in range(len(parent)):
        seen, up = set(), node
        while up != -1 and up not in seen:
            seen.add(up)
            up = parent[up]
        assert (node in reached) == (up == -1)


@unhurried
@given(rooted())
def test_collapse_keeps_exactly_the_nodes_without_an_only_child(parent: list[int]) -> None:
    up = np.array(parent, np.int32)
    order = post_order(up)
    old, new_parent, first, last = (a.tolist() for a in collapse(up, order))
    assert old == [node for node in order.tolist() if parent.count(node) != 1]
    for i, node in enumerate(old):
        above = parent[node]
        while above >= 0 and parent.count(above) == 1:
            above = parent[above]
        assert new_parent[i] == (-1 if above < 0 else old.index(above))
    leaves = [node for node in order.tolist() if node not in parent]
    for i, node in enumerate(old):
        assert leaves[first[i] : last[i]] == [leaf for leaf in plain_leaves(parent, node)]


def plain_leaves(parent: list[int], node: int) -> list[int]:
    below = [i for i in range(len(parent)) if parent[i] == node]
    return [leaf for child in below for leaf in plain_leaves(parent, child)] if below else [node]


def test_a_chain_as_deep_as_it_has_nodes_becomes_one_leaf() -> None:
    parent = np.arange(-1, 99_999, dtype=np.int32)
    old, new_parent, first, last = collapse(parent, post_order(parent))
    assert (old.tolist(), new_parent.tolist(), first.tolist(), last.tolist()) == ([99_999], [-1], [0], [1])
