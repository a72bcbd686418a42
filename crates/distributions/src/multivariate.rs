//! The multivariate normal distribution, and a distribution of correlation matrices.

use wengert_linalg::{Array as Matrices, Factoring, Solving, Triangle};
use wengert_macros::twins;
use wengert_special::{Array, Special};
use wengert_tensor::ops::{Arithmetic, IntoArray, Operand, Products, Reductions, Result, Views, try_cat};
use wengert_tensor::{Generator, Scalar, Shape, Site, Tensor, View};

use crate::distribution::{Distribution, Noise, expand_to_batch, to_array};
use crate::divergence::Divergence;
use crate::expression::{Expr, expr};
use crate::families::LN_SQRT_2PI;
use crate::families::gamma::Beta;
use crate::support::{argument_error, broadcast_shape};

/// The normal distribution of vectors of n numbers. The mean is `loc` `[…, n]`. The covariance is L Lᵀ, where L = `scale_tril` `[…, n, n]`
/// is lower triangular with a positive diagonal. The density is exp(-‖L⁻¹ (x - loc)‖² / 2) / (|L| (2π)^(n/2)), where |L| is the
/// determinant. PyTorch: `MultivariateNormal`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let covariance = Tensor::from([[4.0, 1.0], [1.0, 1.0]]);
/// let normal = MultivariateNormal::new(&Tensor::from([1.0, 0.0]), &covariance);
/// assert!((normal.variance() - Tensor::from([4.0, 1.0])).abs().amax(..).item() < 1e-15);
/// assert_eq!(normal.rsample([5], &mut Generator::new(0)).shape(), &[5, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct MultivariateNormal<A> {
    loc: A,
    scale_tril: A,
}

#[twins]
impl<A: Array + Matrices> MultivariateNormal<A> {
    /// Returns the distribution with this mean and this covariance matrix. The batch dimensions broadcast.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a covariance matrix is not positive-definite, or memory cannot hold the result. For a
    /// variable, the second error occurs when its value is computed.
    pub fn try_new(loc: impl IntoArray<Array = A>, covariance: impl Operand<A>) -> Result<Self, A::Error> {
        let loc = loc.array();
        let covariance = to_array(covariance, &loc)?;
        check_shapes(&loc, &covariance, "covariance_matrix", Site::here("new"))?;
        Ok(MultivariateNormal { scale_tril: covariance.try_cholesky()?, loc })
    }

    /// Returns the distribution with this mean and this Cholesky factor of the covariance. The factor's upper triangle must be 0.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit.
    pub fn try_from_scale_tril(loc: impl IntoArray<Array = A>, scale_tril: impl Operand<A>) -> Result<Self, A::Error> {
        let loc = loc.array();
        let scale_tril = to_array(scale_tril, &loc)?;
        check_shapes(&loc, &scale_tril, "scale_tril", Site::here("from_scale_tril"))?;
        Ok(MultivariateNormal { loc, scale_tril })
    }

    /// Returns the distribution with this mean and the covariance `precision`⁻¹.
    ///
    /// # Errors
    ///
    /// If the shapes do not fit, a matrix is not positive-definite, or memory cannot hold the result. For a variable, the
    /// second error occurs when its value is computed.
    pub fn try_from_precision(loc: impl IntoArray<Array = A>, precision: impl Operand<A>) -> Result<Self, A::Error> {
        let loc = loc.array();
        let precision = to_array(precision, &loc)?;
        check_shapes(&loc, &precision, "precision_matrix", Site::here("from_precision"))?;
        // Reversing the order of rows and columns gives the precision matrix P as U Uᵀ with an upper triangular U. So the Cholesky factor
        // of P⁻¹ is the inverse of Uᵀ.
        let factor = precision.try_flip([-2, -1])?.try_cholesky()?;
        let factor = factor.try_flip([-2, -1])?.try_transpose(-2, -1)?;
        let identity = loc.try_constant(&Tensor::try_eye(loc.shape().last().copied().unwrap_or(0))?)?;
        Ok(MultivariateNormal { scale_tril: factor.try_solve_triangular(&identity, Triangle::Lower)?, loc })
    }
}

/// Returns an error if the mean has no dimension, or the matrix is not square or does not fit the mean. Also if the batch dimensions do not
/// broadcast.
fn check_shapes<A: Array>(loc: &A, matrix: &A, name: &str, at: Site) -> Result<(), A::Error> {
    let (n, shape) = (loc.shape(), matrix.shape());
    if n.rank() == 0 {
        return Err(argument_error(at, "loc must be at least one-dimensional."));
    }
    if shape.rank() < 2 {
        let message = format!("{name} must be at least two-dimensional, with optional leading batch dimensions");
        return Err(argument_error(at, message));
    }
    let n = n.last().copied().unwrap_or(0);
    if shape[shape.rank() - 2..] != [n, n] {
        return Err(argument_error(at, format!("{name} has the shape {shape}, but loc has {n} numbers")));
    }
    broadcast_shape::<A::Error>(&[leading_shape(loc, 1), leading_shape(matrix, 2)], at).map(|_| ())
}

/// Returns the shape of `x` without the last `count` dimensions.
fn leading_shape<A: Array>(x: &A, count: usize) -> Shape {
    let shape = x.shape();
    Shape::from(&shape[..shape.rank() - count])
}

/// Moves the last dimension of `columns` `[…, k]` to the front and splits it into the dimensions `leading_shape`: the result is
/// `[leading_shape…, …]`.
fn restore_leading<A: Array>(columns: &A, leading_shape: &Shape) -> Result<A> {
    let moved = columns.try_movedim(-1, 0)?;
    let shape: Shape = leading_shape.iter().chain(&moved.shape()[1..]).copied().collect();
    moved.try_reshape(&*shape)
}

impl<A: Array + Matrices> MultivariateNormal<A> {
    /// Returns the mean.
    pub fn loc(&self) -> &A {
        &self.loc
    }

    /// Returns the Cholesky factor L of the covariance.
    pub fn scale_tril(&self) -> &A {
        &self.scale_tril
    }

    /// Returns n, the number of elements of a value.
    fn size(&self) -> usize {
        self.loc.shape().last().copied().unwrap_or(0)
    }

    /// Returns the vectors `x` `[…, n]` as columns `[…, n, k]`, whose batch is the batch of L (`scale_tril`). The dimensions of `x` before
    /// this batch become the dimension k, so L is not repeated for them. The second value is the shape of these dimensions.
    fn columns(&self, x: &A) -> Result<(A, Shape), A::Error> {
        let shape = x.shape();
        let batch = self.scale_tril.shape().rank() - 2;
        let leading_shape = Shape::from(&shape[..(shape.rank() - 1).saturating_sub(batch)]);
        let flat: Shape =
            std::iter::once(leading_shape.numel()).chain(shape[leading_shape.rank()..].iter().copied()).collect();
        Ok((x.try_reshape(&*flat)?.try_movedim(0, -1)?, leading_shape))
    }

    /// Returns ‖L⁻¹ x‖² for each of the vectors `x` `[…, n]`, where L is `scale_tril`.
    fn squared_distance(&self, x: &A) -> Result<A> {
        let (columns, leading_shape) = self.columns(x)?;
        let solved = self.scale_tril.try_solve_triangular(&columns, Triangle::Lower)?;
        restore_leading(&Reductions::try_sum(&solved.try_square()?, -2)?, &leading_shape)
    }

    /// Returns ln |L|, the logarithm of the determinant of L (`scale_tril`).
    fn log_determinant(&self) -> Expr<A> {
        Expr::from(self.scale_tril.try_diagonal(0, -2, -1)).ln().sum_last(1)
    }

    /// Returns the batch shape, followed by the shape of an event.
    fn full_shape(&self) -> Shape {
        self.batch_shape().iter().copied().chain([self.size()]).collect()
    }
}

impl<A: Array + Matrices> Distribution<A> for MultivariateNormal<A> {
    fn name(&self) -> &'static str {
        "MultivariateNormal"
    }

    fn any_parameter(&self) -> A {
        self.loc.clone()
    }

    fn batch_shape(&self) -> Shape {
        let shapes = [leading_shape(&self.loc, 1), leading_shape(&self.scale_tril, 2)];
        broadcast_shape::<wengert_tensor::Error>(&shapes, Site::here("batch_shape")).unwrap_or_default()
    }

    fn event_shape(&self) -> Shape {
        Shape::from([self.size()])
    }

    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let at = Site::here("rsample");
        let shape = shape.into().iter().chain(self.full_shape().iter()).copied().collect();
        let normal = Noise { shape, generator, reference: self.loc.clone(), at }.normal()?;
        let (columns, leading_shape) = self.columns(&normal)?;
        let scaled = restore_leading(&self.scale_tril.try_matmul(&columns)?, &leading_shape)?;
        (expr(&scaled) + &self.loc).get()
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let x = expand_to_batch(to_array(value, &self.loc)?, &self.full_shape(), Site::here("log_prob"))?;
        let distance = self.squared_distance(&(expr(&x) - &self.loc).get()?)?;
        (expr(&distance) * -0.5 - self.log_determinant() - self.size() as f64 * LN_SQRT_2PI).get()
    }

    #[track_caller]
    fn try_entropy(&self) -> Result<A> {
        let entropy = (self.log_determinant() + self.size() as f64 * (0.5 + LN_SQRT_2PI)).get()?;
        expand_to_batch(entropy, &self.batch_shape(), Site::here("entropy"))
    }

    #[track_caller]
    fn try_mean(&self) -> Result<A> {
        expand_to_batch(self.loc.clone(), &self.full_shape(), Site::here("mean"))
    }

    #[track_caller]
    fn try_variance(&self) -> Result<A> {
        let variance = expr(&self.scale_tril).square().sum_last(1).get()?;
        expand_to_batch(variance, &self.full_shape(), Site::here("variance"))
    }
}

impl<A: Array + Matrices> Divergence<A, MultivariateNormal<A>> for MultivariateNormal<A> {
    fn divergence(&self, q: &MultivariateNormal<A>) -> Result<A, A::Error> {
        let distance = q.squared_distance(&(expr(&self.loc) - &q.loc).get()?)?;
        let ratio = q.scale_tril.try_solve_triangular(&self.scale_tril, Triangle::Lower)?;
        let trace = expr(&ratio).square().sum_last(2);
        ((trace + &distance - self.size() as f64) * 0.5 + q.log_determinant() - self.log_determinant()).get()
    }
}

/// The distribution of Cholesky factors L `[dim, dim]` of correlation matrices L Lᵀ. The density of the matrices is proportional to
/// |L Lᵀ|^(η - 1), a power of the determinant, with η = `concentration` > 0. The density is uniform for η = 1. For large η the matrices are
/// near the identity (D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines and extended onion
/// method", 2009). `log_prob` does not check that a value is a Cholesky factor of a correlation matrix. `rsample` has gradients. PyTorch:
/// `LKJCholesky`, which has no `rsample`.
///
/// ```
/// # mod wengert { pub use wengert_distributions as distributions; pub use wengert_autograd::prelude; }
/// use wengert::{distributions::prelude::*, prelude::*};
///
/// let l = LkjCholesky::new(3, &Tensor::scalar(0.5)).sample([], &mut Generator::new(0));
/// let correlations = l.matmul(&l.t());
/// assert!((correlations.diagonal(0, 0, 1) - 1.0f64).abs().amax(..).item() < 1e-15);
/// ```
#[derive(Clone, Debug)]
pub struct LkjCholesky<A> {
    dim: usize,
    concentration: A,
}

#[twins]
impl<A: Array> LkjCholesky<A> {
    /// Returns the distribution of factors with `dim` rows and columns.
    ///
    /// # Errors
    ///
    /// If `dim` is below 2. The message is PyTorch's.
    pub fn try_new(dim: usize, concentration: impl IntoArray<Array = A>) -> Result<Self, A::Error> {
        if dim < 2 {
            let message = format!("Expected dim to be an integer greater than or equal to 2. Found dim={dim}.");
            return Err(argument_error(Site::here("new"), message));
        }
        Ok(LkjCholesky { dim, concentration: concentration.array() })
    }
}

impl<A: Array> LkjCholesky<A> {
    /// Returns vectors `[…, dim - 1]` with the elements `value`(0), `value`(1), …. The vector is the same for all distributions of the batch.
    fn constant_vectors(&self, value: impl Fn(f64) -> f64) -> Result<A> {
        let number = |index: &[usize]| A::Elem::from_f64(value(index[0] as f64));
        let vector = self.concentration.try_constant(&Tensor::try_from_fn([self.dim - 1], number)?)?;
        let shape = self.concentration.shape().iter().copied().chain([self.dim - 1]).collect();
        vector.apply_view(View::Expand(shape), Site::here("constants"))
    }

    /// Returns a matrix `[dim - 1, dim]` that is 1 where `is_one` is true for the row and the column, and 0 elsewhere.
    fn pattern(&self, is_one: impl Fn(usize, usize) -> bool) -> Result<A> {
        let one = |index: &[usize]| A::Elem::from_f64(f64::from(u8::from(is_one(index[0], index[1]))));
        self.concentration.try_constant(&Tensor::try_from_fn([self.dim - 1, self.dim], one)?)
    }
}

impl<A: Array> Distribution<A> for LkjCholesky<A> {
    fn name(&self) -> &'static str {
        "LKJCholesky"
    }

    fn any_parameter(&self) -> A {
        self.concentration.clone()
    }

    fn batch_shape(&self) -> Shape {
        self.concentration.shape()
    }

    fn event_shape(&self) -> Shape {
        Shape::from([self.dim, self.dim])
    }

    /// Draws each row of the factor with the length 1. The first row is (1, 0, …, 0). In the other rows, the part left of the diagonal has a
    /// uniform direction, and its squared length is a draw from a beta distribution. Row i, counted from 0, has i elements in this part, so
    /// the first parameter of the beta distribution is i / 2. PyTorch uses i - 1/2, which gives another distribution for three or more rows.
    #[track_caller]
    fn try_rsample(&self, shape: impl Into<Shape>, generator: &mut Generator) -> Result<A> {
        let (at, dim) = (Site::here("rsample"), self.dim);
        let shape: Shape = shape.into();
        let expanded_concentration = self.concentration.try_unsqueeze(-1)?;
        let rest =
            (expr(&expanded_concentration) + 0.5 * (dim as f64 - 2.0) - &self.constant_vectors(|k| 0.5 * k)?).get()?;
        let squares =
            Beta::try_new(&self.constant_vectors(|k| 0.5 * (k + 1.0))?, &rest)?.try_rsample(&shape, generator)?;
        let squares = squares.try_unsqueeze(-1)?;
        let full: Shape =
            shape.iter().chain(self.concentration.shape().iter()).copied().chain([dim - 1, dim]).collect();
        let normal = Noise { shape: full.clone(), generator, reference: expanded_concentration, at }.normal()?;
        let left = (expr(&normal) * &self.pattern(|row, column| column <= row)?).get()?;
        let length = expr(&left).square().sum_last(1).sqrt().get()?.try_unsqueeze(-1)?;
        let diagonal = (1.0 - expr(&squares)).sqrt() * &self.pattern(|row, column| column == row + 1)?;
        let other_rows = (expr(&left) / &length * expr(&squares).sqrt() + diagonal).get()?;
        let first = self.pattern(|_, column| column == 0)?.try_narrow(0, 0, 1)?;
        let leading_shape: Shape = full[..full.rank() - 2].iter().copied().chain([1, dim]).collect();
        try_cat(&[first.apply_view(View::Expand(leading_shape), at)?, other_rows], -2)
    }

    #[track_caller]
    fn try_log_prob(&self, value: impl Operand<A>) -> Result<A> {
        let (n, eta) = ((self.dim - 1) as f64, &self.concentration);
        let shape: Shape = eta.shape().iter().copied().chain([self.dim, self.dim]).collect();
        let l = expand_to_batch(to_array(value, eta)?, &shape, Site::here("log_prob"))?;
        let diagonal = l.try_diagonal(0, -2, -1)?.try_narrow(-1, 1, self.dim - 1)?;
        // For a matrix with d rows, the exponent of diagonal element k + 2, counted from 1, is 2 (η - 1) + d - (k + 2).
        let powers = (expr(&eta.try_unsqueeze(-1)?) * 2.0 + &self.constant_vectors(|k| n - 3.0 - k)?).get()?;
        let alpha = (expr(eta) + 0.5 * n).get()?;
        let shifted = (expr(&alpha) - 0.5).get()?;
        let size = Expr::from(shifted.try_multigammaln(self.dim - 1)) + 0.5 * n * std::f64::consts::PI.ln();
        let size = size - expr(&alpha).gammaln() * n;
        ((expr(&powers) * expr(&diagonal).ln()).sum_last(1) - size).get()
    }
}
