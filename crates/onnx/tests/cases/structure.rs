//! The cases of reductions, views, joining, indexing, products and windows.

use wengert_autograd::prelude::*;
use wengert_onnx::Export;
use wengert_tensor::ops::TensorLike as _;
use wengert_tensor::{Site, View};

use super::{Case, between, case, one, two};

pub fn cases<T: Float>() -> Vec<Case<T>> {
    let mut cases = reductions();
    cases.extend(views());
    cases.extend(indexing());
    cases.extend(products());
    cases.extend(windows());
    cases.extend(derivatives());
    cases
}

fn reductions<T: Float>() -> Vec<Case<T>> {
    let x = || between::<T>(-2.0, 2.0, &[3, 4, 5]);
    vec![
        one("sum", x(), |x| x.sum(..) + x.sum(1).sum(0)),
        one("sum_of_several_dimensions", x(), |x| x.sum([0, 2])),
        one("mean", x(), |x| x.mean(-1)),
        one("prod", x(), |x| x.prod(1)),
        one("amax_amin", x(), |x| x.amax([0, 2]) - x.amin([0, 2])),
        one("var_std", x(), |x| x.var(1, 1) + x.std(1, 0) + x.var([0, 1], 1)),
        one("norms", x(), |x| {
            [0.0, 1.0, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY]
                .iter()
                .map(|&ord| x.vector_norm(ord, [1, 2]))
                .reduce(|sum, norm| sum + norm)
                .unwrap()
        }),
        one("cumsum", x(), |x| x.cumsum(1)),
        one("cumprod", x(), |x| x.cumprod(2)),
        one("softmax", x(), |x| x.softmax(1) + x.log_softmax(-1)),
        one("logsumexp", x(), |x| x.logsumexp(1)),
        one("layer_norm", x(), |x| x.layer_norm([5], None, None, 1e-5)),
        one("softmax_of_a_number", Tensor::scalar(T::from_f64(1.5)), |x| x.softmax(0) + x),
        one("sum_of_a_number", Tensor::scalar(T::from_f64(1.5)), |x| x.sum(..) * x),
    ]
}

fn views<T: Float>() -> Vec<Case<T>> {
    let x = || between::<T>(-2.0, 2.0, &[3, 4, 5]);
    vec![
        one("expand", x(), |x| x.unsqueeze(1).expand([2, 3, 6, 4, 5])),
        one("reshape", x(), |x| x.reshape([5, 12]).unsqueeze(0)),
        one("permute", x(), |x| x.permute([2, 0, 1])),
        one("flip", x(), |x| x.flip([0, 2])),
        one("slices", x(), |x| x.slice(1, 1..3).narrow(2, 2, 3).select(0, 1)),
        one("slice_step", x(), |x| {
            x.apply_view(View::Slice { axis: 2, start: 1, len: 2, step: 3 }, Site::here("s")).unwrap()
        }),
        one("slice_back", x(), |x| {
            x.apply_view(View::Slice { axis: 2, start: 4, len: 3, step: -2 }, Site::here("s")).unwrap()
        }),
        one("slice_empty", x(), |x| x.slice(1, 2..2).sum(..) + x.sum(..)),
        one("diagonal", x(), |x| cat(&[x.diagonal(0, 1, 2), x.diagonal(1, 1, 2), x.diagonal(-2, 1, 2)], 1)),
        one("diagonal_of_others", x(), |x| x.diagonal(-1, 2, 0)),
        one("unfold", x(), |x| x.unfold(2, 3, 2)),
        one("cat", x(), |x| cat(&[x, x * 2.0, x.slice(1, 0..1)], 1)),
        one("stack", x(), |x| stack(&[x, -x], 2)),
        one("split", x(), |x| x.chunk(2, 1)[1] + x.split(2, 1)[0]),
        one("pad", x(), |x| x.pad(&[1, 2, 0, 1], PadMode::Constant(0.5))),
        one("pad_reflect", x(), |x| x.pad(&[1, 2], PadMode::Reflect)),
        one("pad_circular", x(), |x| x.pad(&[1, 2], PadMode::Circular)),
        one("repeat", x(), |x| x.repeat([2, 1, 3])),
        one("roll", x(), |x| x.roll(2, 1)),
        one("tril", x(), |x| x.tril(0) + x.triu(1) * 3.0),
        one("detach", x(), |x| x.detach() + 1.0),
        one("an_input_is_an_output", x(), |x| x),
        one("a_constant_is_an_output", x(), |x| x.tape().constant(Tensor::from([T::from_f64(2.0)]))),
        case(
            "one_value_is_two_outputs",
            Export::new(),
            [("x", x())],
            [],
            ["y", "z", "w"],
            |_, [x], []| {
                let y = x.exp();
                [y, y, y + 1.0]
            },
            &[],
        ),
    ]
}

fn indexing<T: Float>() -> Vec<Case<T>> {
    let x = || between::<T>(-2.0, 2.0, &[4, 5]);
    vec![
        one("index_select", x(), |x| x.index_select(1, &Tensor::from([4, 0, 0]))),
        one("gather", x(), |x| x.gather(1, &Tensor::from([[0, 1], [4, 4], [2, 0], [3, 3]]))),
        one("scatter_add", x(), |x| x.scatter_add(0, &Tensor::from([[0, 1, 1, 3, 0]]), x.slice(0, 0..1))),
        one("index_add", x(), |x| x.index_add(1, &Tensor::from([1, 1]), x.slice(1, 0..2), 1.0)),
        case(
            "an_index_is_an_input",
            Export::new(),
            [("x", x())],
            [("rows", Tensor::from([3i64, 0, 0]))],
            ["y"],
            |_, [x], [rows]| [x.index_select(0, rows)],
            &[],
        ),
        case(
            "slices_of_an_index_are_read",
            Export::new().batch("n"),
            [],
            [("tokens", Tensor::from([[3i64, 0, 1], [2, 1, 0]]))],
            ["y"],
            |tape, [], [tokens]| {
                let table = tape.constant(between::<T>(-1.0, 1.0, &[4, 2]));
                let step = |time| table.index_select(0, &tokens.select(1, time));
                [step(0) + step(1) * 2.0 + step(2) * 3.0]
            },
            &[1, 2, 6],
        ),
    ]
}

fn products<T: Float>() -> Vec<Case<T>> {
    let x = |shape: &[usize]| between::<T>(-1.0, 1.0, shape);
    vec![
        two("matmul", [x(&[3, 4]), x(&[4, 5])], |a, b| a.matmul(b)),
        two("matmul_of_batches", [x(&[2, 1, 3, 4]), x(&[5, 4, 2])], |a, b| a.matmul(b)),
        two("matmul_of_a_vector", [x(&[3, 4]), x(&[4])], |a, b| a.matmul(b)),
        two("linear", [x(&[2, 3, 4]), x(&[5, 4])], |a, b| a.linear(b, None)),
        two("einsum", [x(&[2, 3, 4]), x(&[2, 4, 5])], |a, b| einsum("bij,bjk->bki", &[a, b])),
        two("outer", [x(&[3]), x(&[4])], |a, b| a.outer(b)),
    ]
}

fn windows<T: Float>() -> Vec<Case<T>> {
    let x = |shape: &[usize]| between::<T>(-1.0, 1.0, shape);
    let image = || between::<T>(-1.0, 1.0, &[2, 4, 7, 8]);
    vec![
        two("conv1d", [x(&[2, 3, 9]), x(&[4, 3, 3])], |a, b| {
            a.conv1d(&b, None, &ConvOptions::default().padding(1).stride(2))
        }),
        two("conv2d", [image(), x(&[6, 2, 3, 2])], |a, b| {
            a.conv2d(&b, None, &ConvOptions::default().stride([1, 2]).padding([0, 1]).dilation([2, 1]).groups(2))
        }),
        two("conv2d_rest", [image(), x(&[6, 4, 3, 3])], |a, b| a.conv2d(&b, None, &ConvOptions::default().stride(3))),
        two("conv3d", [x(&[1, 2, 4, 5, 4]), x(&[3, 2, 2, 3, 2])], |a, b| a.conv3d(&b, None, &ConvOptions::default())),
        two("conv_transpose1d", [x(&[2, 3, 4]), x(&[3, 2, 3])], |a, b| {
            a.conv_transpose1d(&b, None, &ConvOptions::default().stride(2))
        }),
        two("conv_transpose2d", [x(&[2, 4, 3, 4]), x(&[4, 3, 3, 2])], |a, b| {
            let options = ConvOptions::default().stride([2, 3]).padding([1, 0]).output_padding([1, 0]).groups(2);
            a.conv_transpose2d(&b, None, &options)
        }),
        one("max_pool1d", x(&[2, 3, 9]), |x| x.max_pool1d(2, &PoolOptions::default())),
        one("max_pool2d", image(), |x| x.max_pool2d([3, 2], &PoolOptions::default().stride([2, 1]).padding([1, 1]))),
        one("max_pool2d_ceil", image(), |x| x.max_pool2d(3, &PoolOptions::default().stride(2).ceil_mode(true))),
        one("max_pool2d_dilated", image(), |x| x.max_pool2d(2, &PoolOptions::default().dilation(3).stride(1))),
        one("max_pool2d_padded_by_the_kernel", image(), |x| {
            x.max_pool2d(2, &PoolOptions::default().dilation([3, 4]).padding([1, 2]).stride(1))
        }),
        one("avg_pool1d", x(&[2, 3, 9]), |x| x.avg_pool1d(2, &PoolOptions::default())),
        one("avg_pool2d", image(), |x| x.avg_pool2d([3, 2], &PoolOptions::default().stride([2, 1]))),
        one("avg_pool2d_padded", image(), |x| x.avg_pool2d(3, &PoolOptions::default().stride(2).padding(1))),
        one("avg_pool2d_inside", image(), |x| {
            let options = PoolOptions::default().stride(2).padding(1).count_include_pad(false).ceil_mode(true);
            x.avg_pool2d(3, &options)
        }),
        one("avg_pool_of_one_window", image(), |x| x.avg_pool2d([5, 8], &PoolOptions::default())),
        one("adaptive_avg_pool", image(), |x| x.adaptive_avg_pool2d([3, 4])),
        one("adaptive_max_pool", image(), |x| x.adaptive_max_pool2d([3, 4])),
        one("global_avg_pool", image(), |x| x.adaptive_avg_pool2d(1)),
        one("interpolate", image(), |x| x.interpolate([9, 5], InterpolateMode::Nearest)),
        one("im2col", image(), |x| x.im2col([2, 3], 1, 0, 1)),
    ]
}

/// Returns the cases of derivatives with respect to the input. Their programs contain the adjoints of views and poolings.
fn derivatives<T: Float>() -> Vec<Case<T>> {
    let x = || between::<T>(-1.0, 1.0, &[3, 4]);
    let image = || between::<T>(-1.0, 1.0, &[1, 2, 6, 5]);
    vec![
        one("gradient_of_slices", x(), |x| {
            let y = x.slice(1, 1..3).square().sum(..) + x.flip(0).unfold(1, 2, 1).exp().sum(..);
            y.grad([x])[0]
        }),
        one("gradient_of_a_diagonal", x(), |x| x.diagonal(1, 0, 1).square().sum(..).grad([x])[0]),
        one("gradient_of_an_index", x(), |x| x.index_select(1, &Tensor::from([0, 0, 3])).square().sum(..).grad([x])[0]),
        one("gradient_of_gather", x(), |x| {
            x.gather(1, &Tensor::from([[0, 0], [3, 1], [2, 2]])).square().sum(..).grad([x])[0]
        }),
        one("gradient_of_avg_pool", image(), |x| {
            x.avg_pool2d(2, &PoolOptions::default().stride(1)).square().sum(..).grad([x])[0]
        }),
        one("gradient_of_conv", image(), |x| {
            let weight = between::<T>(-1.0, 1.0, &[3, 2, 3, 2]);
            x.conv2d(&x.tape().constant(&weight), None, &ConvOptions::default().stride(2)).tanh().sum(..).grad([x])[0]
        }),
        one("gradient_of_conv_transpose", between(-1.0, 1.0, &[2, 3, 4]), |x| {
            let weight = x.tape().constant(between::<T>(-1.0, 1.0, &[3, 2, 3]));
            let options = ConvOptions::default().dilation(2).output_padding(1);
            x.tanh().conv_transpose1d(&weight, None, &options).sum(..).grad([x])[0]
        }),
        one("second_derivative", x(), |x| {
            let [dx] = x.tanh().square().sum(..).grad([x]);
            dx.square().sum(..).grad([x])[0]
        }),
    ]
}
