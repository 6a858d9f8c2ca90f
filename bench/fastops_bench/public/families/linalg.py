"""`tf.linalg`."""

import tensorflow as tf


def beside(world):
    lu, perm = tf.linalg.lu(world.spd)
    return {
        "lu": lu,
        "perm": perm,
        "operator": tf.linalg.LinearOperatorFullMatrix(
            world.spd, is_self_adjoint=True, is_positive_definite=True
        ),
        "row": world.n[0],
        "beta": world.y[1:],
        "bands": world.m[:2] + 3.0,
        "diagonals": tf.stack([world.x, world.x + 4.0, world.x]),
        "pair": tf.stack([world.x, world.y], 1),
        "zspd": tf.cast(world.spd, tf.complex64),
    }


TEXT = """
tf.einsum("ij,jk->ik", m, n)
tf.eig(m)
tf.eigvals(m)
tf.eye(3)
tf.matmul(m, n)
tf.matrix_square_root(spd)
tf.norm(m)
tf.tensordot(m, n, 1)
tf.linalg.adjoint(zm)
tf.linalg.band_part(m, 1, 1)
tf.linalg.banded_triangular_solve(bands, n)
tf.linalg.cholesky(spd)
tf.linalg.cholesky_solve(lower, n)
tf.linalg.cross([[1.0, 2.0, 3.0]], [[3.0, 1.0, 2.0]])
tf.linalg.det(m)
tf.linalg.diag(x)
tf.linalg.diag_part(m)
tf.linalg.eigh(spd)
tf.linalg.eigh_tridiagonal(x, beta)
tf.linalg.eigvalsh(spd)
tf.linalg.expm(m)
tf.linalg.global_norm([x, m])
tf.linalg.inv(spd)
tf.linalg.logdet(spd)
tf.linalg.logm(zspd)
tf.linalg.lstsq(spd, n)
tf.linalg.lu(m)
tf.linalg.lu_matrix_inverse(lu, perm)
tf.linalg.lu_reconstruct(lu, perm)
tf.linalg.lu_solve(lu, perm, n)
tf.linalg.matrix_rank(m)
tf.linalg.matrix_transpose(m)
tf.linalg.matvec(m, row)
tf.linalg.normalize(x)
tf.linalg.pinv(m)
tf.linalg.qr(m)
tf.linalg.set_diag(m, row)
tf.linalg.slogdet(m)
tf.linalg.solve(spd, n)
tf.linalg.svd(m)
tf.linalg.tensor_diag(x)
tf.linalg.tensor_diag_part(m)
tf.linalg.trace(m)
tf.linalg.triangular_solve(lower, n)
tf.linalg.tridiagonal_matmul(diagonals, pair)
tf.linalg.tridiagonal_solve(diagonals, pair)
tf.linalg.experimental.conjugate_gradient(operator, row)
tf.linalg.LinearOperatorAdjoint(operator).matvec(row)
tf.linalg.LinearOperatorBlockDiag([operator, operator]).to_dense()
tf.linalg.LinearOperatorCirculant(z).matvec(zz)
tf.linalg.LinearOperatorComposition([operator, operator]).matvec(row)
tf.linalg.LinearOperatorDiag(x).solvevec(y)
tf.linalg.LinearOperatorFullMatrix(m).matmul(n)  # makes a tf.Module, which tracks its attributes
tf.linalg.LinearOperatorHouseholder(x).matvec(y)
tf.linalg.LinearOperatorIdentity(3).to_dense()
tf.linalg.LinearOperatorInversion(operator).matvec(row)
tf.linalg.LinearOperatorKronecker([operator, operator]).log_abs_determinant()
tf.linalg.LinearOperatorLowRankUpdate(operator, n).matvec(row)
tf.linalg.LinearOperatorLowerTriangular(lower).solvevec(row)
tf.linalg.LinearOperatorScaledIdentity(3, a).trace()
tf.linalg.LinearOperatorToeplitz(x, x).matvec(y)  # it logs in each call
tf.linalg.LinearOperatorTridiag(diagonals).matvec(x)
tf.linalg.LinearOperatorZeros(3).to_dense()
"""
