//! The triangle of a square matrix that an operation reads, and the forms of triangular systems.

/// The triangle of square matrices that an operation reads. The diagonal belongs to both triangles. PyTorch: the arguments `upper` and
/// `UPLO`.
///
/// [`right`](Triangle::right) and [`unitriangular`](Triangle::unitriangular) return other forms of systems for
/// [`solve_triangular`](crate::Solving::solve_triangular).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Triangle {
    /// The lower triangle: PyTorch's `upper=False` and `UPLO="L"`.
    #[default]
    Lower,
    /// The upper triangle: PyTorch's `upper=True` and `UPLO="U"`.
    Upper,
}

impl Triangle {
    /// Returns the system X A = B instead of A X = B. PyTorch: `left=False`.
    pub fn right(self) -> TriangularSystem {
        TriangularSystem::from(self).right()
    }

    /// Returns the system A X = B, where the elements on the diagonal of A count as ones and are not read. PyTorch: `unitriangular=True`.
    pub fn unitriangular(self) -> TriangularSystem {
        TriangularSystem::from(self).unitriangular()
    }
}

/// The form of a triangular system of equations: the [`Triangle`] of A, the side of X, and whether the elements on the diagonal of A count
/// as ones.
///
/// A [`Triangle`] converts to the system A X = B that reads the diagonal of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct TriangularSystem {
    pub(crate) triangle: Triangle,
    pub(crate) left: bool,
    pub(crate) unitriangular: bool,
}

impl TriangularSystem {
    /// Returns the system X A = B instead of A X = B. PyTorch: `left=False`.
    pub fn right(self) -> Self {
        TriangularSystem { left: false, ..self }
    }

    /// Returns the system in which the elements on the diagonal of A count as ones and are not read. PyTorch: `unitriangular=True`.
    pub fn unitriangular(self) -> Self {
        TriangularSystem { unitriangular: true, ..self }
    }
}

impl From<Triangle> for TriangularSystem {
    fn from(triangle: Triangle) -> Self {
        TriangularSystem { triangle, left: true, unitriangular: false }
    }
}
