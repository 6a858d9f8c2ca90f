"""Linear algebra: decompositions, solvers, functions of matrices, einsum."""

import itertools

import numpy as np

from parity.recipes import mismatched, not_differentiated, recipe, unstable

BOTH = (False, True)

SQUARES = (
    (3, 3),
    (1, 1),
    (0, 0),
    (0, 3, 3),
    (2, 0, 0),
    (5, 5),
    (2, 1, 3, 1, 1, 4, 4),
)
RECTANGLES = ((3, 2), (1, 1), (2, 5), (0, 3), (3, 0), (0, 4, 2), (7, 7), (2, 1, 1, 3, 1, 4, 3))


LARGE_SQUARES = ((65, 65), (10, 33, 33))
LARGE_RECTANGLES = ((65, 33), (33, 65), (10, 17, 9))


def large(d):
    """Tell whether to yield large matrices; with special values, algorithms run long in vain."""
    return d.thorough and not d.special


def squares(d):
    return SQUARES + LARGE_SQUARES if large(d) else SQUARES


def rectangles(d):
    return RECTANGLES + LARGE_RECTANGLES if large(d) else RECTANGLES


def definite(maker, *shape):
    """Draw well-conditioned positive definite matrices, in both modes."""
    factor = maker.ordinary(*shape).numpy()
    product = factor @ np.conj(np.swapaxes(factor, -1, -2))
    return maker.const(product / max(shape[-1], 1) + np.eye(shape[-1]))


def triangular(maker, *shape):
    """Draw lower triangular matrices with a diagonal that is not close to 0."""
    return maker.const(np.linalg.cholesky(definite(maker, *shape).numpy()))


# ---------------------------------------------------------------------------------------------
# Decompositions
# ---------------------------------------------------------------------------------------------


@recipe("Cholesky")
def cholesky(d):
    # If there is no decomposition, the upper triangle is uninitialized memory.
    for shape in squares(d):
        yield {"input": definite(d.T, *shape)}


@recipe("CholeskyGrad")
def cholesky_gradient(d):
    for shape in squares(d):
        yield {"l": triangular(d.T, *shape), "grad": d.T(*shape)}


@recipe("Lu")
def lu(d):
    for shape in squares(d):
        yield {"input": d.T(*shape)}
        yield {"input": definite(d.T, *shape)}


@recipe("Qr")
def qr(d):
    for shape, full in itertools.product(rectangles(d), BOTH):
        yield {"input": d.T(*shape), "full_matrices": full}


@recipe("Svd")
def svd(d):
    for shape, full in itertools.product(rectangles(d), BOTH):
        yield {"input": d.T(*shape), "full_matrices": full}
    for shape in rectangles(d):
        yield {"input": d.T(*shape), "compute_uv": False}


@recipe("SelfAdjointEigV2")
def eigenvalues_of_self_adjoint(d):
    for shape in squares(d):
        yield {"input": d.T(*shape)}
        yield {"input": definite(d.T, *shape), "compute_v": False}


@recipe("Eig")
def eigenvalues(d):
    for shape, vectors in itertools.product(squares(d), BOTH):
        yield {"input": d.T(*shape), "compute_v": vectors}


unstable(
    "Eig SelfAdjointEigV2 Svd",
    "without vectors, these outputs are undefined scalars",
    undefined=(1, 2),
    only=lambda outputs: outputs[1].shape.rank == 0,
)
mismatched(
    "Eig",
    "Tout is the complex dtype of the precision of T",
    lambda types: types["Tout"].real_dtype != types["T"].real_dtype,
)

# ---------------------------------------------------------------------------------------------
# Functions of matrices
# ---------------------------------------------------------------------------------------------


@recipe("MatrixDeterminant LogMatrixDeterminant MatrixSquareRoot")
def function_of_matrices(d):
    for shape in squares(d):
        yield {"input": d.T(*shape) if d.special else definite(d.T, *shape)}


not_differentiated(
    "MatrixSquareRoot",
    "the function that makes the jvp divides by zero if the matrix is empty",
    lambda arguments: 0 in arguments["input"].shape,
)


@recipe("MatrixInverse")
def inverse(d):
    for shape, adjoint in itertools.product(squares(d), BOTH):
        yield {"input": d.T(*shape), "adjoint": adjoint}
        yield {"input": definite(d.T, *shape), "adjoint": adjoint}


@recipe("MatrixLogarithm")
def logarithm(d):
    # The kernel never ends for a singular matrix.
    for shape in squares(d):
        yield {"input": definite(d.T, *shape)}


# ---------------------------------------------------------------------------------------------
# Systems of equations
# ---------------------------------------------------------------------------------------------

SYSTEMS = ((3, 3, 2), (1, 1, 1), (0, 0, 2), (3, 3, 0), (7, 7, 5))
"""Rows and columns of the matrix, columns of the right side."""

BATCHES = ((), (0,), (2, 1, 3))

LARGE_SYSTEMS = [((), (65, 65, 7)), ((10,), (33, 33, 3))]


def systems(d):
    small = list(itertools.product(BATCHES, SYSTEMS))
    return small + LARGE_SYSTEMS if large(d) else small


@recipe("MatrixSolve")
def solve(d):
    for (batch, (rows, columns, sides)), adjoint in itertools.product(systems(d), BOTH):
        yield {
            "matrix": definite(d.T, *batch, rows, columns),
            "rhs": d.T(*batch, rows, sides),
            "adjoint": adjoint,
        }
    yield {"matrix": d.T(3, 3), "rhs": d.T(3, 2)}


@recipe("MatrixSolveLs")
def solve_least_squares(d):
    double = d.of("float64")
    for batch, (rows, columns, sides) in itertools.product(
        BATCHES, ((5, 3, 2), (3, 5, 2), (1, 1, 1), (3, 3, 0), (3, 0, 2))
    ):
        for attrs, regularizer in (({}, 0.0), ({}, 0.5), ({"fast": False}, 0.0)):
            yield {
                "matrix": d.T(*batch, rows, columns),
                "rhs": d.T(*batch, rows, sides),
                "l2_regularizer": double.const(regularizer),
                **attrs,
            }


@recipe("MatrixTriangularSolve")
def solve_triangular(d):
    for (batch, (rows, columns, sides)), lower in itertools.product(systems(d), BOTH):
        yield {
            "matrix": triangular(d.T, *batch, rows, columns),
            "rhs": d.T(*batch, rows, sides),
            "lower": lower,
        }
    for one, other in (((2, 1), (3,)), ((), (2, 3)), ((4, 1, 2), (1, 3, 1))):
        for lower, adjoint in itertools.product(BOTH, BOTH):
            yield {
                "matrix": d.T(*one, 3, 3),
                "rhs": d.T(*other, 3, 2),
                "lower": lower,
                "adjoint": adjoint,
            }


@recipe("BandedTriangularSolve")
def solve_banded(d):
    for (one, other), (bands, size, sides), lower, adjoint in itertools.product(
        (((), ()), ((2,), (2,)), ((2, 1), (3,))),
        ((1, 1, 1), (2, 5, 3), (5, 5, 1)),
        BOTH,
        BOTH,
    ):
        yield {
            "matrix": d.T(*one, bands, size),
            "rhs": d.T(*other, size, sides),
            "lower": lower,
            "adjoint": adjoint,
        }


PIVOTING = (
    {},
    {"partial_pivoting": False},
    {"perturb_singular": True},
)


@recipe("TridiagonalSolve")
def solve_tridiagonal(d):
    for (batch, (size, _, sides)), pivoting in itertools.product(systems(d), PIVOTING):
        # This kernel reads out of bounds when it searches the largest of no elements.
        if sides or "perturb_singular" not in pivoting:
            yield {
                "diagonals": d.T(*batch, 3, size),
                "rhs": d.T(*batch, size, sides),
                **pivoting,
            }
    # A singular matrix.
    for pivoting in PIVOTING:
        yield {"diagonals": d.T.const(np.zeros([3, 4])), "rhs": d.T(4, 2), **pivoting}


@recipe("TridiagonalMatMul")
def multiply_tridiagonal(d):
    for batch, (size, _, sides) in systems(d):
        if size:
            yield {
                "superdiag": d.T(*batch, 1, size),
                "maindiag": d.T(*batch, 1, size),
                "subdiag": d.T(*batch, 1, size),
                "rhs": d.T(*batch, size, sides),
            }


# ---------------------------------------------------------------------------------------------
# Einsum
# ---------------------------------------------------------------------------------------------

EQUATIONS = (
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk->ik", (3, 0), (0, 2)),
    ("ij,jk->ik", (0, 3), (3, 2)),
    ("->", ()),
    (",->", (), ()),
    ("i,->i", (3,), ()),
    ("ij->ji", (3, 5)),
    ("ij->", (3, 5)),
    ("ii->", (3, 3)),
    ("ii->i", (3, 3)),
    ("i->ii", (3,)),
    ("iji->j", (2, 3, 2)),
    ("i,j->ji", (3,), (5,)),
    ("ij,ij->", (3, 5), (3, 5)),
    ("abc,ce->eab", (2, 3, 4), (4, 5)),
    ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
    ("...->...", (2, 1, 3)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("a...,...a->...", (3, 2, 1), (4, 3)),
    ("abcdefg,gfe->dcba", (1, 2, 1, 2, 1, 3, 2), (2, 3, 1)),
)
"""The equation, and the shapes of its operands."""

LARGE_EQUATIONS = (
    ("bij,bjk->bik", (10, 65, 129), (10, 129, 33)),
    ("abc,ce->abe", (100, 100, 10), (10, 7)),
)


@recipe("Einsum")
def einsum(d):
    more = (
        ("bij,bjk->bik", (10, 65, 129), (10, 129, 33)),
        ("abc,ce->abe", (100, 100, 10), (10, 7)),
    )
    for equation, *shapes in (*EQUATIONS, *(more if d.thorough else ())):
        yield {"inputs": [d.T(*shape) for shape in shapes], "equation": equation}
