"""The weighted PCA that the mixture paper names believes heavy cells."""

import numpy as np
from scipy.sparse import csr_matrix

from discreet.core.arrays import Rows
from discreet.papers.mixture.mixture import weighted_pca


def test_weighted_pca_finds_the_factors_that_heavy_cells_agree_on():
    """Cells that lie weigh next to nothing; with equal weights they are believed."""
    rng = np.random.default_rng(0)
    truth = np.outer(rng.uniform(0.5, 1, 400), rng.uniform(0.5, 1, 12))
    lies = rng.random(truth.shape) < 0.2
    values = np.where(lies, 3.0, truth).astype(np.float32)
    step = weighted_pca(1)

    def error(weights):
        grid = csr_matrix(values)
        rows = Rows(grid.indptr.astype(np.int64), grid.indices.astype(np.int32), grid.data, weights.ravel())
        turned = csr_matrix(values.T)
        columns = Rows(turned.indptr.astype(np.int64), turned.indices.astype(np.int32), turned.data)
        left, right = step(rows, columns, np.zeros((12, 1)))
        return np.abs(left @ right.T - truth).max()

    assert error(np.where(lies, 1e-5, 1.0).astype(np.float32)) < 0.05
    assert error(np.ones(truth.shape, np.float32)) > 0.3
