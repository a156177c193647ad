"""Compiled kernels of the branch and bound: arrays in, arrays out, nothing of queries.

A *problem* is always to maximize Σ m_i ψ_i(t_i), t = A x + c, over a box with real and integer
coordinates. Every ψ is increasing, convex left of τ and concave right of it; or it is straight
with a kink or two jumps: TENT, VALLEY, WINDOW, HOLE; or a parabola: HILL, BOWL. One that is FLAT
is zero, and its t has to be 1, as the number of categories of a value. A *node* is a box
[l, u] on x and intervals [L, U] on t; of a convex sum it is the corners of that. For any
multipliers λ, curvatures q, centre x̂ and diagonal D ≥ 0 with D - Σ q_i a_i a_iᵀ positive
semidefinite,

    Σ_i max over [L_i, U_i] of (m_i ψ_i(t) - λ_i t - q_i/2 (t - t̂_i)²) + λ·c
        + Σ_j max over {l_j, u_j} of ((Aᵀλ)_j x + D_j/2 (x - x̂_j)²)

is an upper bound on the node (``bound.dual_bound``). It holds for any λ, q, x̂ and D: everything
else only makes it small. Proof: docs/theory/extrema.md.

The solver calls ``entries``. The kernels are compiled once into machine code, which is stored on
disk and loaded without the compiler (``compiled``, ``machine_code``). A kernel that is called
directly runs as plain Python.
"""
