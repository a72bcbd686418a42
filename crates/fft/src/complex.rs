//! Arithmetic of complex numbers, which are pairs of real numbers in a last dimension of size 2.

use wengert_macros::twins;
use wengert_tensor::ops::{Result, TensorLike};
use wengert_tensor::{Axes, Binary, Float, Shape, Site, View};

use crate::steps::{Steps, argument_error, broadcast_shapes, join_parts};

/// Returns complex numbers `[…, 2]` with the real parts `re` and the imaginary parts `im`, whose shapes broadcast. PyTorch:
/// `view_as_real(torch.complex(re, im))`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::complex;
/// use wengert::prelude::*;
///
/// let z = complex(&Tensor::from([1.0, 2.0]), &Tensor::from([0.0, -1.0]));
/// assert_eq!(z, Tensor::from([[1.0, 0.0], [2.0, -1.0]]));
/// ```
///
/// # Errors
///
/// If the shapes do not broadcast, or memory cannot hold the result.
#[twins]
pub fn try_complex<A: TensorLike<Elem: Float>>(re: &A, im: &A) -> Result<A> {
    let at = Site::here("complex");
    let shape = broadcast_shapes(&re.shape(), &im.shape(), at)?;
    join_parts(&re.expand_to(&shape, at)?, &im.expand_to(&shape, at)?, at)
}

/// Arithmetic of complex numbers `[…, 2]`.
///
/// ```
/// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
/// use wengert::fft::prelude::*;
/// use wengert::prelude::*;
///
/// let z = Tensor::from([[3.0, 4.0], [0.0, -1.0]]);
/// assert_eq!(z.real().to_vec(), [3.0, 0.0]);
/// assert_eq!(z.complex_abs().to_vec(), [5.0, 1.0]);
/// ```
#[twins(blanket)]
pub trait ComplexNumbers: TensorLike<Elem: Float> {
    /// Returns the real parts `[…]` of complex numbers `[…, 2]`. PyTorch: `real`.
    ///
    /// # Errors
    ///
    /// If the last dimension does not have size 2.
    fn try_real(&self) -> Result<Self> {
        Ok(split_parts(self, Site::here("real"))?.0)
    }

    /// Returns the imaginary parts `[…]` of complex numbers `[…, 2]`. PyTorch: `imag`.
    ///
    /// # Errors
    ///
    /// If the last dimension does not have size 2.
    fn try_imag(&self) -> Result<Self> {
        Ok(split_parts(self, Site::here("imag"))?.1)
    }

    /// Returns the complex conjugates `[…, 2]` of complex numbers `[…, 2]`. PyTorch: `conj`.
    ///
    /// # Errors
    ///
    /// If the last dimension does not have size 2, or memory cannot hold the result.
    fn try_conj(&self) -> Result<Self> {
        conjugate(self, Site::here("conj"))
    }

    /// Returns the products of complex numbers `[…, 2]`. The dimensions before the last one broadcast. PyTorch: `mul` of complex tensors.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_fft as fft; }
    /// use wengert::fft::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let i = Tensor::from([0.0, 1.0]);
    /// assert_eq!(i.complex_mul(&i).to_vec(), [-1.0, 0.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If a last dimension does not have size 2, the shapes do not broadcast, or memory cannot hold the result.
    fn try_complex_mul(&self, other: &Self) -> Result<Self> {
        multiply(self, other, Site::here("complex_mul"))
    }

    /// Returns the absolute values `[…]` of complex numbers `[…, 2]`. The derivative is 0 at the number 0. The
    /// result is the square root of the sum of both squares: ∞ if this sum overflows, and 0 if both squares underflow.
    /// PyTorch: `abs` of a complex tensor.
    ///
    /// # Errors
    ///
    /// If the last dimension does not have size 2, or memory cannot hold the result.
    fn try_complex_abs(&self) -> Result<Self> {
        let at = Site::here("complex_abs");
        let shape = check_pairs(self, at)?;
        let axis = shape.rank() - 1;
        let shape = shape.replaced(axis..axis + 1, &[]);
        self.apply_norm(2.0, &Axes::from_slice(&[axis]), at)?.apply_view(View::Reshape(shape), at)
    }
}

/// Returns the shape of `x`, or an error if its last dimension does not have size 2.
pub(crate) fn check_pairs<A: TensorLike>(x: &A, at: Site) -> Result<Shape, A::Error> {
    let shape = x.shape();
    match shape.last() {
        Some(2) => Ok(shape),
        Some(_) => Err(argument_error::<A>(at, "Tensor must have a last dimension of size 2")),
        None => Err(argument_error::<A>(at, "Input tensor must have one or more dimensions")),
    }
}

/// Returns the real parts and the imaginary parts of complex numbers `[…, 2]`.
fn split_parts<A: TensorLike>(x: &A, at: Site) -> Result<(A, A), A::Error> {
    let axis = check_pairs(x, at)?.rank() - 1;
    Ok((x.select_axis(axis, 0, at)?, x.select_axis(axis, 1, at)?))
}

pub(crate) fn conjugate<A: TensorLike>(x: &A, at: Site) -> Result<A, A::Error> {
    let (re, im) = split_parts(x, at)?;
    join_parts(&re, &im.scale(-1.0, at)?, at)
}

pub(crate) fn multiply<A: TensorLike>(x: &A, y: &A, at: Site) -> Result<A, A::Error> {
    let shape = broadcast_shapes(&check_pairs(x, at)?, &check_pairs(y, at)?, at)?;
    let ((a, b), (c, d)) = (split_parts(&x.expand_to(&shape, at)?, at)?, split_parts(&y.expand_to(&shape, at)?, at)?);
    let times = |x: &A, y: &A| x.apply_binary(Binary::Mul, y, at);
    let re = times(&a, &c)?.apply_binary(Binary::Sub, &times(&b, &d)?, at)?;
    let im = times(&a, &d)?.apply_binary(Binary::Add, &times(&b, &c)?, at)?;
    join_parts(&re, &im, at)
}
