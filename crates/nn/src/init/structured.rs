//! Weights with many zeros: convolutions that copy their input, and sparse matrices.

use wengert_macros::twins;
use wengert_tensor::{Error, Float, Generator, Site, Sizes, Tensor};

use crate::init::random::draw_tensor;

/// Returns the weight `[out, in / groups, …kernel]` of a convolution that copies its input channels. In each group, output channel d has the
/// number 1 at the centre of the kernel for input channel d, and 0 elsewhere. The centre of a kernel has the index size / 2, rounded down, in
/// each dimension. Output channels without an input channel are 0. A convolution with this weight, an odd kernel, `same` padding
/// and no bias returns its input if it has as many outputs as inputs. PyTorch: `dirac_`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::nn::{Conv2d, Generator, Layer, init};
/// use wengert::prelude::*;
///
/// let mut layer = Conv2d::builder(3, 3, 5).same().bias(false).build(&mut Generator::new(0));
/// layer.weight.value = init::dirac(layer.weight.value.shape(), 1);
/// let images = Tensor::<f32>::randn([2, 3, 8, 8], &mut Generator::new(1));
/// assert_eq!(layer.forward(&images), images);
/// ```
///
/// # Errors
///
/// If `shape` does not have three to five dimensions, or has a negative size. Also if `groups` is 0 or does not divide the number of outputs,
/// or there is not enough memory.
#[twins]
pub fn try_dirac<T: Float>(shape: impl Into<Sizes>, groups: usize) -> Result<Tensor<T>, Error> {
    let at = Site::here("dirac");
    let shape = shape.into().resolve_plain(at)?;
    let refuse = |message: &str| Err(Error::Argument { message: message.to_owned(), at });
    let [outputs, inputs, ref kernel @ ..] = *shape.sizes() else {
        return refuse("Only tensors with 3, 4, or 5 dimensions are supported");
    };
    if !(1..=3).contains(&kernel.len()) {
        return refuse("Only tensors with 3, 4, or 5 dimensions are supported");
    }
    if groups == 0 || !outputs.is_multiple_of(groups) {
        return refuse("dim 0 must be divisible by groups");
    }
    let mut weight = Tensor::try_full(&shape, T::ZERO)?;
    if weight.numel() == 0 {
        return Ok(weight);
    }
    let elements: usize = kernel.iter().product();
    let centre = kernel.iter().fold(0, |position, &size| position * size + size / 2);
    let outputs_per_group = outputs / groups;
    let data = weight.make_mut();
    for output in 0..outputs {
        let input = output % outputs_per_group;
        if input < inputs {
            data[(output * inputs + input) * elements + centre] = T::ONE;
        }
    }
    Ok(weight)
}

/// Returns a matrix `[rows, columns]` of numbers from the normal distribution with mean 0 and standard deviation `std`. Each column has
/// ⌈`sparsity` · rows⌉ zeros at random places (J. Martens, "Deep learning via Hessian-free optimization", 2010). PyTorch: `sparse_`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::init;
/// use wengert::prelude::*;
///
/// let weight: Tensor<f32> = init::sparse([10, 4], 0.85, 0.01, &mut Generator::new(0));
/// assert_eq!(weight.eq(0.0).count_nonzero(0), Tensor::from([9, 9, 9, 9]));
/// ```
///
/// # Errors
///
/// If `shape` does not have two dimensions, or has a negative size. Also if `sparsity` is not from 0 to 1, `std` is negative or NaN, or there
/// is not enough memory.
#[twins]
pub fn try_sparse<T: Float>(
    shape: impl Into<Sizes>,
    sparsity: f64,
    std: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("sparse");
    let shape = shape.into().resolve_plain(at)?;
    let refuse = |message: String| Err(Error::Argument { message, at });
    let [rows, columns] = *shape.sizes() else {
        return refuse(format!("Only tensors with 2 dimensions are supported: the shape is {shape}"));
    };
    if !(0.0..=1.0).contains(&sparsity) {
        return refuse(format!("sparse expects a sparsity from 0 to 1, but found {sparsity}"));
    }
    if std.is_nan() || std < 0.0 {
        return refuse(format!("sparse expects std >= 0.0, but found std {std}"));
    }
    let mut weight: Tensor<T> = draw_tensor(&shape, || std * generator.normal())?;
    if weight.numel() == 0 {
        return Ok(weight);
    }
    let zeros = (rows as f64 * sparsity).ceil() as usize;
    let data = weight.make_mut();
    for column in 0..columns {
        for row in generator.permutation(rows).into_iter().take(zeros) {
            data[row * columns + column] = T::ZERO;
        }
    }
    Ok(weight)
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{Nonzero as _, Reductions as _, Views as _};

    use super::*;

    /// The positions of the ones come from `torch.nn.init.dirac_` of PyTorch 2.15.
    #[test]
    fn ones_are_where_pytorch_has_them() {
        let ones = |shape: &[usize], groups| -> Vec<Vec<i64>> {
            let weight = dirac::<f64>(shape, groups);
            assert_eq!(weight.sum(..).item(), weight.ne(0.0).count_nonzero(..).item() as f64);
            let at = weight.ne(0.0).nonzero();
            (0..at.shape()[0]).map(|row| at.select(0, row).to_vec()).collect()
        };
        assert_eq!(ones(&[3, 2, 4], 1), [[0, 0, 2], [1, 1, 2]]);
        assert_eq!(ones(&[4, 3, 3], 2), [[0, 0, 1], [1, 1, 1], [2, 0, 1], [3, 1, 1]]);
        assert_eq!(ones(&[2, 3, 3, 2], 1), [[0, 0, 1, 1], [1, 1, 1, 1]]);
        assert_eq!(ones(&[4, 1, 2, 1, 3], 2), [[0, 0, 1, 0, 1], [2, 0, 1, 0, 1]]);
        assert_eq!(dirac::<f64>([2, 0, 3], 1).numel(), 0);
    }

    #[test]
    fn each_column_has_its_zeros_and_the_rest_the_deviation() {
        let weight: Tensor<f64> = sparse([200, 300], 0.3, 2.0, &mut Generator::new(0));
        assert!(weight.eq(0.0).count_nonzero(0).iter().all(|count| count == 60));
        // The mean square of n = 42,000 normal numbers has a standard deviation of √(2/n) times their variance. The bound is five such deviations.
        let square = weight.iter().map(|x| x * x).sum::<f64>() / 42_000.0;
        assert!((square / 4.0 - 1.0).abs() < 5.0 * (2.0f64 / 42_000.0).sqrt(), "{square}");
        assert_ne!(weight.select(1, 0).eq(0.0), weight.select(1, 1).eq(0.0));
        assert_eq!(sparse::<f64>([3, 2], 1.0, 1.0, &mut Generator::new(0)), Tensor::zeros([3, 2]));
        assert_eq!(sparse::<f64>([0, 2], 0.5, 1.0, &mut Generator::new(0)).numel(), 0);
    }

    #[test]
    fn wrong_arguments_are_errors() {
        let text = |shape: &[usize], groups| try_dirac::<f64>(shape, groups).unwrap_err().to_string();
        assert!(text(&[3, 3], 1).contains("Only tensors with 3, 4, or 5 dimensions are supported"));
        assert!(text(&[1; 6], 1).contains("Only tensors with 3, 4, or 5 dimensions are supported"));
        assert!(text(&[3, 3, 3], 2).contains("dim 0 must be divisible by groups"));
        assert!(text(&[3, 3, 3], 0).contains("dim 0 must be divisible by groups"));
        let refused = |shape: &[usize], sparsity, std| {
            try_sparse::<f64>(shape, sparsity, std, &mut Generator::new(0)).unwrap_err().to_string()
        };
        assert!(refused(&[3], 0.5, 1.0).contains("Only tensors with 2 dimensions are supported"));
        assert!(refused(&[3, 2], 1.5, 1.0).contains("a sparsity from 0 to 1, but found 1.5"));
        assert!(refused(&[3, 2], f64::NAN, 1.0).contains("a sparsity from 0 to 1, but found NaN"));
        assert!(refused(&[3, 2], 0.5, -1.0).contains("sparse expects std >= 0.0"));
    }
}
