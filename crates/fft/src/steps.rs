//! Short array methods for the code of the transforms. Their errors name the operation that the user called, from its [`Site`].

use wengert_tensor::ops::{Result, TensorLike};
use wengert_tensor::{Axes, Binary, Error, Scalar, Shape, Site, View, broadcast};

/// Array methods from which the transforms are composed.
pub(crate) trait Steps: TensorLike {
    /// Returns `len` elements along dimension `axis`, beginning with index `start`.
    fn slice_axis(&self, axis: usize, start: usize, len: usize, at: Site) -> Result<Self> {
        if start == 0 && len == self.shape()[axis] {
            return Ok(self.clone());
        }
        self.apply_view(View::Slice { axis, start, len, step: 1 }, at)
    }

    /// Returns the slice with index `index` along dimension `axis`, without this dimension.
    fn select_axis(&self, axis: usize, index: usize, at: Site) -> Result<Self> {
        let shape = self.shape().replaced(axis..axis + 1, &[]);
        self.slice_axis(axis, index, 1, at)?.apply_view(View::Reshape(shape), at)
    }

    /// Returns the array with `n` elements along dimension `axis`. Cuts off the last elements, or appends zeros.
    fn resize_axis(&self, axis: usize, n: usize, at: Site) -> Result<Self> {
        let shape = self.shape();
        let size = shape[axis];
        if n <= size {
            return self.slice_axis(axis, 0, n, at);
        }
        check_size::<Self>(&shape.replaced(axis..axis + 1, &[n]), at)?;
        let zero = self.try_number(Self::Elem::ZERO)?;
        let zeros = zero.apply_view(View::Expand(shape.replaced(axis..axis + 1, &[n - size])), at)?;
        if size == 0 { Ok(zeros) } else { Self::apply_cat(&[self.clone(), zeros], axis, at) }
    }

    /// Returns the array with dimension `from` moved to position `to`. The order of the other dimensions stays the same.
    fn move_axis(&self, from: usize, to: usize, at: Site) -> Result<Self> {
        if from == to {
            return Ok(self.clone());
        }
        let mut order: Axes = (0..self.shape().rank()).collect();
        order.remove(from);
        order.insert(to, from);
        self.apply_view(View::Permute(order), at)
    }

    fn expand_to(&self, shape: &Shape, at: Site) -> Result<Self> {
        if self.shape() == *shape { Ok(self.clone()) } else { self.apply_view(View::Expand(shape.clone()), at) }
    }

    /// Returns the array times the number `factor`.
    fn scale(&self, factor: f64, at: Site) -> Result<Self> {
        let factor = self.try_number(Self::Elem::from_f64(factor))?.expand_to(&self.shape(), at)?;
        self.apply_binary(Binary::Mul, &factor, at)
    }
}

impl<A: TensorLike> Steps for A {}

/// Returns complex numbers `[…, 2]` from arrays of real parts and imaginary parts, whose shapes are equal.
pub(crate) fn join_parts<A: TensorLike>(re: &A, im: &A, at: Site) -> Result<A> {
    let rank = re.shape().rank();
    let shape: Shape = re.shape().iter().copied().chain([1]).collect();
    let part = |x: &A| x.apply_view(View::Reshape(shape.clone()), at);
    A::apply_cat(&[part(re)?, part(im)?], rank, at)
}

/// Returns the shape to which two shapes broadcast, or an error if they do not broadcast.
pub(crate) fn broadcast_shapes(x: &Shape, y: &Shape, at: Site) -> Result<Shape, Error> {
    broadcast::join(&[x, y]).map_err(|mismatch| Error::Broadcast(mismatch, at))
}

/// Returns an error if no memory can hold a complex array of this shape.
pub(crate) fn check_size<A: TensorLike>(shape: &Shape, at: Site) -> Result<(), Error> {
    let max_count = isize::MAX as usize / (2 * size_of::<A::Elem>());
    match shape.checked_numel() {
        Some(count) if count <= max_count => Ok(()),
        _ => Err(Error::TooLarge { shape: shape.clone(), dtype: A::Elem::DTYPE, at }),
    }
}

/// Returns the error of an argument with the text `message`, in the error type of the array.
pub(crate) fn argument_error<A: TensorLike>(at: Site, message: impl Into<String>) -> A::Error {
    Error::Argument { message: message.into(), at }.into()
}
