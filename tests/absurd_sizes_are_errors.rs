//! A size that memory cannot hold is an error and never aborts the process. An operation that needs no memory works on any
//! size.

use wengert::autograd::transforms::Vmap;
use wengert::autograd::{Call, Operation};
use wengert::nn::metrics::{BinaryScores, RegressionErrors};
use wengert::nn::{GRU, LSTM, try_ctc_loss};
use wengert::prelude::*;
use wengert::tensor::{Error, Layout};

const MEBI: isize = 1 << 20;
const TEBI: isize = 1 << 40;

/// Returns a tensor of 2⁵⁸ elements whose memory has only one element.
fn huge() -> Tensor<f32> {
    Tensor::scalar(1.0).expand([TEBI, MEBI / 4])
}

fn is_out_of_memory<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::OutOfMemory { .. }))
}

fn is_too_large<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::TooLarge { .. }))
}

#[test]
fn constructors() {
    assert!(is_out_of_memory(Tensor::<f32>::try_full([TEBI, MEBI], 0.0)));
    assert!(is_too_large(Tensor::<f64>::try_full([TEBI, TEBI], 0.0)));
    assert!(is_too_large(Tensor::<u8>::try_full([isize::MAX, 2], 0)));
    assert!(Tensor::<u8>::try_full([isize::MAX, isize::MAX, 0], 0).is_ok());
    assert!(Tensor::<f32>::try_from_vec(vec![0.0], [TEBI, TEBI]).is_err());
    let text = Tensor::<f32>::try_full([TEBI, MEBI], 0.0).unwrap_err().sentence();
    assert_eq!(text, "memory cannot hold a tensor of shape [1099511627776, 1048576] of f32 (4294967296.0 GiB)");
}

#[test]
fn expansions() {
    let x = Tensor::scalar(1.0f32);
    let error = x.try_expand([TEBI, TEBI]).unwrap_err();
    assert_eq!(error.sentence(), "numel: integer multiplication overflow");
    assert!(is_too_large(x.try_expand([isize::MAX])));
    let deep = Tensor::<u8>::scalar(1).expand([TEBI]);
    assert!(is_too_large(deep.try_unfold(0, (TEBI / 2) as usize, 1)));
    assert_eq!(huge().get(&[1 << 39, 1 << 17]), Some(1.0));
}

#[test]
fn broadcasts_of_small_tensors() {
    let column = Tensor::<f32>::ones([1]).expand([TEBI, 1]);
    let row = Tensor::<f32>::ones([1]);
    assert!(is_too_large(column.try_add(row.expand([1, TEBI]))));
    assert!(is_out_of_memory(column.try_add(row.expand([1, MEBI]))));
    assert!(is_out_of_memory(column.try_lt(row.expand([1, MEBI]))));
    assert!(is_out_of_memory(column.try_matmul(row.expand([1, MEBI]))));
    assert!(is_too_large(column.try_matmul(row.expand([1, TEBI]))));
}

#[test]
fn every_kind_of_operation() {
    let x = huge();
    let flat = x.select(0, 0).expand([TEBI, MEBI / 4]);
    let table = [
        x.try_exp(),
        x.try_add(&x),
        x.try_mul(2.0),
        x.try_contiguous(),
        x.try_cast::<f64>().map(|_| x.clone()),
        x.try_to_vec().map(|_| x.clone()),
        x.try_to_ndarray().map(|_| x.clone()),
        x.try_isnan().map(|_| x.clone()),
        // Counts the true elements of a mask that has as many elements as `x`.
        x.try_count_nonzero(..).map(|_| x.clone()),
        wengert::tensor::ops::try_cat(&[x.clone(), x.clone()], 0),
        wengert::tensor::ops::try_stack(&[x.clone(), x.clone()], 1),
        x.clone().try_into_ndarray().map(|_| x.clone()),
        flat.t().try_reshape([-1]).and_then(|x| x.try_neg()),
    ];
    for (i, result) in table.into_iter().enumerate() {
        assert!(is_out_of_memory(result), "{i}");
    }
}

#[test]
fn indices() {
    let x = Tensor::<f32>::ones([4]);
    let index = Tensor::from([1i64]).expand([1isize << 58]);
    assert!(is_out_of_memory(x.try_index_select(0, &index)));
    assert!(is_out_of_memory(x.try_gather(0, &index)));
}

#[test]
fn in_place() {
    let mut x = huge();
    assert!(matches!(x.try_add_(1.0), Err(Error::Overlap { internal: true, .. })));
    let mut small = Tensor::<f32>::ones([1]);
    assert!(matches!(small.try_add_(&x), Err(Error::InPlaceShape { .. })));
    assert_eq!(small.to_vec(), [1.0]);
}

#[test]
fn a_divisor_is_checked_once() {
    let ones = Tensor::scalar(1i64).expand([1isize << 58]);
    assert!(is_out_of_memory(ones.try_remainder(&ones)));
    let zero = Tensor::scalar(0i64).expand([1isize << 58]);
    assert_eq!(ones.try_remainder(&zero).unwrap_err().sentence(), "ZeroDivisionError");
}

#[test]
fn joined_sizes_are_counted() {
    let half = Tensor::<u8>::scalar(1).expand([isize::MAX / 2 + 1]);
    let parts = vec![half; 4];
    assert!(is_too_large(wengert::tensor::ops::try_cat(&parts, 0)));
}

#[test]
fn sizes_next_to_a_zero_are_not_multiplied() {
    let x = Tensor::<f32>::zeros([3usize, 1 << 62, 1 << 62, 0]);
    let views = [
        x.select(0, 2),
        x.slice(1, (5.., isize::MAX)),
        x.flip(..),
        x.permute([3, 2, 1, 0]),
        x.diagonal(1, 1, 2),
        x.unfold(1, 2, 1 << 61),
        x.unsqueeze(2),
        x.reshape([0]),
        x.transpose(-1, -2).contiguous(),
    ];
    for view in views {
        assert_eq!((view.numel(), view.to_vec().len(), view.exp().numel()), (0, 0, 0), "{:?}", view.shape());
        assert_eq!(view.to_string().lines().nth(1), Some("[]"));
    }
    assert!(is_too_large(x.try_flatten(1, 2)));
    assert!(is_too_large(x.try_sum(3)));
    assert!(is_too_large(x.try_matmul(Tensor::zeros([0, 5]))));
    assert!(x.try_matmul(Tensor::zeros([1, 5])).is_err());
    assert!(x.mean(..).item().is_nan());
}

#[test]
fn operations_without_memory_work_on_any_size() {
    let x = huge();
    let text = x.to_string();
    assert!(text.starts_with("Tensor<f32> [1099511627776, 262144]\n[[1.0, 1.0, 1.0, ...") && text.len() < 1000);
    // A sum over an expanded dimension is a multiplication, and a maximum of equal elements is one of them. So both need little memory.
    assert_eq!(x.sum(..).item(), 2f32.powi(58));
    assert_eq!((x.amax(0).numel(), x.amin(..).item()), (1 << 18, 1.0));
    assert!(x.mean_keepdim(0).narrow(1, 0, 5).to_vec() == [1.0; 5]);
    assert_eq!(x.as_ndarray().shape(), [TEBI as usize, MEBI as usize / 4]);
    assert_eq!(x.narrow(0, TEBI / 2, 2).narrow(1, 0, 3).neg().to_vec(), [-1.0; 6]);
    let layout = x.t().flip(..).layout().clone();
    assert_eq!(layout.extent(), Layout::contiguous(wengert::tensor::Shape::scalar()).extent());
}

#[test]
fn tensors_cross_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<Tensor<f32>>();
    crosses::<Tensor<bool>>();
    crosses::<Error>();
    // This tensor shares its memory with an array.
    let array = ndarray::ArcArray::from(vec![1.0f64, 2.0]);
    let x = Tensor::from(array.clone());
    let sum = std::thread::spawn(move || x.sum(..).item()).join();
    assert_eq!((sum.ok(), array.sum()), (Some(3.0), 3.0));
}

#[test]
fn writing_and_selecting_by_index() {
    use wengert::tensor::ops::{IndexItem, try_one_hot};

    let x = huge();
    let index = Tensor::from([0i64]).expand([1isize << 58]);
    let mask = Tensor::scalar(true).expand([TEBI, MEBI / 4]);
    let (row, source) = (Tensor::from([0i64]), Tensor::<f32>::ones([1, 1 << 18]));
    let table = [
        Tensor::<f32>::ones([4]).try_take(&index),
        x.try_masked_select(&mask),
        x.try_masked_scatter(&mask, Tensor::ones([1])),
        x.try_index_set(&[IndexItem::At(0)], 0.0),
        x.try_index_add(0, &row, &source, 1.0),
        x.try_index_copy(0, &row, &source),
        x.try_index_fill(0, &row, 0.0),
        x.try_tril(0),
        x.try_roll(1, 0),
        try_one_hot(&index, Some(2)).map(|_| x.clone()),
        x.try_unbind(0).map(|_| x.clone()),
        Tensor::<f32>::ones([2]).try_repeat_interleave_each(&Tensor::from([1i64 << 60, 1]), None),
    ];
    for (i, result) in table.into_iter().enumerate() {
        assert!(matches!(result, Err(Error::OutOfMemory { .. } | Error::TooLarge { .. })), "{i}: {result:?}");
    }
}

#[test]
fn windows_of_any_size() {
    use wengert::tensor::ops::{ConvOptions, PadMode, PoolOptions};

    let (x, weight) = (Tensor::<f32>::ones([1, 1, 4]), Tensor::<f32>::ones([1, 1, 2]));
    let conv = |options: ConvOptions| x.try_conv1d(&weight, None, &options);
    assert!(is_too_large(conv(ConvOptions::default().padding(isize::MAX))));
    assert!(is_out_of_memory(conv(ConvOptions::default().padding(1isize << 50))));
    assert!(conv(ConvOptions::default().dilation(isize::MAX)).is_err());
    assert_eq!(conv(ConvOptions::default().stride(isize::MAX)).map(|y| y.to_vec()), Ok(vec![2.0]));
    assert!(x.try_conv_transpose1d(&weight, None, &ConvOptions::default().stride(isize::MAX)).is_err());
    assert!(x.try_max_pool1d(isize::MAX, &PoolOptions::default().padding(isize::MAX / 2)).is_err());
    assert_eq!(x.max_pool1d(2, &PoolOptions::default().stride(isize::MAX)).to_vec(), [1.0]);
    assert!(x.try_pad(&[isize::MAX, isize::MAX], PadMode::Constant(0.0)).is_err());
    assert!(x.try_pad(&[isize::MIN, isize::MIN], PadMode::Constant(0.0)).is_err());
    for mode in [PadMode::Constant(0.0), PadMode::Replicate] {
        assert!(is_out_of_memory(x.try_pad(&[0, 1 << 50], mode)));
    }
    assert!(x.try_adaptive_avg_pool1d(isize::MAX).is_err());
    assert!(x.try_interpolate(isize::MAX, wengert::tensor::ops::InterpolateMode::Nearest).is_err());
    assert!(x.try_repeat([1, 1, usize::MAX]).is_err());
    // The windows themselves take no memory.
    let wide = Tensor::scalar(1.0f32).expand([1isize << 30, 1 << 30]);
    assert!(is_out_of_memory(wide.try_avg_pool1d(2, &PoolOptions::default())));
    assert!(is_out_of_memory(wide.try_adaptive_avg_pool1d(1 << 29)));
    let (plane, kernel) = (Tensor::<f32>::ones([1, 1, 1, 1]), Tensor::<f32>::ones([1, 1, 3, 3]));
    let options = ConvOptions::default().padding(isize::MAX).dilation(isize::MAX);
    assert!(is_too_large(plane.try_conv_transpose2d(&kernel, None, &options)));
}

/// Strides far beyond the input cost neither time nor memory.
#[test]
fn strides_of_any_size() {
    use wengert::tensor::ops::ConvOptions;

    let (one, weight) = (Tensor::<f32>::ones([1, 1, 1]), Tensor::from([[[1.0f32, 2.0, 3.0, 4.0]]]));
    for stride in [1isize << 27, 1 << 32, isize::MAX] {
        let y = one.conv_transpose1d(&weight, None, &ConvOptions::default().stride(stride));
        assert_eq!(y.to_vec(), [1.0, 2.0, 3.0, 4.0]);
    }
    let (plane, weight) = (Tensor::<f32>::ones([1, 1, 2, 2]), Tensor::<f32>::ones([1, 1, 2, 2]));
    let options = ConvOptions::default().stride(1isize << 32).padding(1isize << 31);
    assert_eq!(plane.conv_transpose2d(&weight, None, &options).to_vec(), [0.0; 4]);
}

#[test]
fn operations_that_would_compute_for_hours_are_refused() {
    let x = Tensor::scalar(1.0f32).expand([TEBI]);
    for result in [x.try_softmax(0), x.try_log_softmax(0), x.try_softmin(0)] {
        assert!(is_out_of_memory(result));
    }
}

/// The position of an extreme along a dimension of equal elements is found without a copy of the dimension.
#[test]
fn extremes_along_an_expanded_dimension() {
    let x = Tensor::from([[1.0f32], [f32::NAN], [3.0]]).expand([3, TEBI]);
    assert_eq!(x.argmax(1).to_vec(), [0; 3]);
    assert_eq!(x.argmin(-1).to_vec(), [0; 3]);
    assert_eq!(x.t().argmax(0).to_vec(), [0; 3]);
}

#[test]
fn a_tape_refuses_matrices_that_no_memory_can_hold() {
    use wengert::prelude::Tape;
    use wengert::tensor::ops::Diagonals;

    let tape = Tape::<f32>::new();
    let x = tape.var(&Tensor::scalar(1.0)).expand([TEBI]);
    assert!(x.try_diag(0).is_err() && x.try_diag_embed(0, 0, 1).is_err());
    let small = tape.var(&Tensor::ones([2]));
    assert!(small.try_diag(isize::MAX).is_err() && small.try_diag(1 << 20).is_ok());
}

#[test]
fn a_size_beyond_isize_is_refused_even_without_elements() {
    for sizes in [[0, usize::MAX], [usize::MAX, 0], [0, isize::MAX as usize + 1]] {
        assert!(Tensor::<f64>::try_full(sizes, 0.0).is_err());
        assert!(Tensor::<f64>::try_from_vec(Vec::new(), sizes).is_err());
        assert!(Tensor::<f64>::zeros([0]).try_reshape(sizes).is_err());
    }
    assert_eq!(Tensor::<f64>::zeros([0, isize::MAX as usize]).shape(), &[0, isize::MAX as usize]);
}

/// Equal terms are added or multiplied at once. A loop over 2⁴⁰ terms would take minutes or hours.
#[test]
fn many_equal_terms_are_computed_at_once() {
    let half = Tensor::<f64>::scalar(0.5).expand([3, TEBI]);
    let expected = Tensor::full([3, 3], 0.25 * TEBI as f64);
    assert_eq!(half.matmul(half.t()), expected);
    let ones = Tensor::<f64>::ones([3, 3]);
    assert_eq!(ones.addmm(&half, half.t(), 1, 1), &expected + 1.0);
    assert_eq!(Tensor::<f64>::scalar(-1.0).expand([TEBI]).prod(..).item(), 1.0);
    assert_eq!(Tensor::<f64>::scalar(0.999).expand([TEBI]).prod(..).item(), 0.0);
    // An f32 does not represent this odd number of elements.
    let odd = Tensor::<f32>::scalar(-1.0).expand([(1 << 25) + 1]);
    assert_eq!((odd.prod(..).item(), odd.expand([2, (1 << 25) + 1]).prod(..).item()), (-1.0, 1.0));
}

/// Returns a variable of shape `shape` whose memory has only one element.
fn expanded<'t, const N: usize>(tape: &'t Tape<f32>, shape: [usize; N]) -> Var<'t, f32> {
    tape.constant(Tensor::scalar(0.5).expand(shape))
}

/// Layers that record operations for each step of a sequence refuse more steps than memory can hold, before they record the first one.
#[test]
fn sequences() {
    const STEPS: usize = 1 << 50;
    let generator = &mut Generator::new(0);
    let tape = Tape::<f32>::new();
    let lstm = LSTM::<f32>::new(1, 1, generator);
    let both: GRU = GRU::builder(1, 1).bidirectional().batch_first().build(generator);
    let before = tape.len();
    let results = [
        lstm.try_forward(expanded(&tape, [STEPS, 1, 1])).map(drop),
        lstm.try_forward(expanded(&tape, [STEPS, 1])).map(drop),
        lstm.try_forward(expanded(&tape, [STEPS, 0, 1])).map(drop),
        lstm.try_forward(expanded(&tape, [1 << 40, 1 << 40, 0])).map(drop),
        both.try_forward(expanded(&tape, [1, STEPS, 1])).map(drop),
        lstm.try_forward_padded(expanded(&tape, [STEPS, 1, 1]), &[3], None).map(drop),
        lstm.try_forward_padded(expanded(&tape, [STEPS, 1, 1]), &[STEPS], None).map(drop),
    ];
    for (i, result) in results.into_iter().enumerate() {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("memory cannot hold") || text.contains("can be addressed"), "{i}: {text}");
    }
    assert_eq!(tape.len(), before + 7);
    let log_probs = Tensor::scalar(-0.5f32).expand([STEPS, 1, 2]);
    let recorded = tape.constant(&log_probs);
    let targets = Tensor::from([[1]]);
    assert!(is_out_of_memory(try_ctc_loss(&log_probs, &targets, &[3], &[1])));
    assert!(try_ctc_loss(recorded, &targets, &[3], &[1]).is_err());
}

/// Metrics refuse samples that memory cannot hold.
#[test]
fn metrics() {
    let (x, labels) = (Tensor::scalar(0.5f32).expand([1usize << 50]), Tensor::scalar(1i64).expand([1usize << 50]));
    assert!(RegressionErrors::new().update(&x, &x).is_err());
    assert!(BinaryScores::new().update(&x, &labels).is_err());
    let none = Tensor::<f32>::zeros([0usize, 1 << 40, 1 << 40]);
    assert!(RegressionErrors::new().update(&none, &none).is_err());
}

/// Functions that are called for each example of a batch refuse more examples than memory can hold.
#[test]
fn batches() {
    let tape = Tape::<f32>::new();
    let x = expanded(&tape, [1 << 50, 1]);
    let before = tape.len();
    // The function reads a value, so it is called for each example.
    assert!(Vmap::new().try_record(|[x]| [if x.value().numel() > 0 { x + 1.0 } else { x }], [x]).is_err());
    // The operation has no batching rule, so it is recorded for each example.
    assert!(Vmap::new().try_record(|[x]| [x.tape().apply(Unbatched, &[x])], [x]).is_err());
    assert!(tape.len() < before + 100);
}

/// An operation without a batching rule.
struct Unbatched;

impl Operation<f32> for Unbatched {
    fn name(&self) -> &'static str {
        "unbatched"
    }

    fn run(&self, inputs: &[Tensor<f32>]) -> Result<Tensor<f32>, wengert::autograd::Error> {
        Ok(inputs[0].clone())
    }

    fn vjp<'t>(&self, _: &Call<'t, f32>, _: usize, g: Var<'t, f32>) -> Option<Var<'t, f32>> {
        Some(g)
    }
}
