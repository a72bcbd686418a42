use wengert_autograd::gradcheck;
use wengert_autograd::prelude::*;
use wengert_tensor::ops::AttentionMask;

use super::*;
use crate::layers::layer::Layer as _;
use crate::module::Module as _;

fn layer(builder: AttentionBuilder) -> MultiheadAttention<f64> {
    let mut layer: MultiheadAttention<f64> = builder.build(&mut Generator::new(4));
    // The biases are set to random numbers, because mistakes would not show with the initial biases of 0.
    for bias in [&mut layer.in_proj_bias, &mut layer.out_proj.bias].into_iter().flatten() {
        bias.value = random(bias.value.shape());
    }
    layer
}

fn random(shape: &[usize]) -> Tensor<f64> {
    Tensor::uniform(-1.0, 1.0, shape, &mut Generator::new(shape.iter().sum::<usize>() as u64))
}

#[track_caller]
fn assert_close(got: &Tensor<f64>, want: &Tensor<f64>) {
    assert_eq!(got.shape(), want.shape());
    // The bound allows for rounding in sums of at most a hundred terms of size 1.
    let off = (got - want).abs().iter().max_by(f64::total_cmp).unwrap_or(0.0);
    assert!(off < 1e-13, "{off}");
}

#[test]
fn each_head_is_attention_over_its_part_of_the_projections() {
    let layer = layer(MultiheadAttention::builder(4, 2).batch_first());
    let (tape, weight) = (Tape::new(), &layer.in_proj_weight.as_ref().unwrap().value);
    let x = random(&[3, 5, 4]);
    let all = x.linear(weight, Some(&layer.in_proj_bias.as_ref().unwrap().value));
    let head = |number: isize| {
        let part = |of: isize| all.narrow(2, 4 * of + 2 * number, 2);
        part(0).scaled_dot_product_attention(part(1), part(2), AttentionMask::Causal, None)
    };
    let out = &layer.out_proj;
    let expected = cat(&[head(0), head(1)], 2).linear(&out.weight.value, Some(&out.bias.as_ref().unwrap().value));
    let x = tape.constant(&x);
    assert_close(&layer.self_attend(x, AttentionMasks::causal()).value(), &expected);
    assert_close(&layer.attend(x, x, x, AttentionMasks::causal()).value(), &expected);
    let other = MultiheadAttention { batch_first: false, ..layer.clone() };
    let y = other.self_attend(x.transpose(0, 1), AttentionMasks::causal());
    assert_close(&y.transpose(0, 1).value(), &expected);
    let alone = layer.self_attend(x.select(0, 1), AttentionMasks::causal());
    assert_close(&alone.value(), &expected.select(0, 1));
}

#[test]
fn masks_hide_keys() {
    let layer = layer(MultiheadAttention::builder(4, 2).batch_first());
    let tape = Tape::new();
    let x = tape.constant(random(&[2, 3, 4]));
    let is_padding = Tensor::from([[false, false, true], [false, false, false]]);
    let weights = |masks| layer.self_attend_with_weights(x, masks).1.value();
    let causal = weights(AttentionMasks::causal().key_padding_mask(&is_padding));
    assert_eq!(causal.shape(), &[2, 2, 3, 3]);
    for (position, weight) in causal.iter().enumerate() {
        let (example, query, key) = (position / 18, position / 3 % 3, position % 3);
        assert_eq!(weight == 0.0, key > query || example == 0 && key == 2, "{position}");
    }
    assert_close(&causal.sum(3), &Tensor::ones([2, 2, 3]));
    // The following masks hide the same keys, in other forms.
    let keep = Tensor::<bool>::from([[true, false, false], [true, true, false], [true, true, true]]);
    let masks = AttentionMasks::new().mask(AttentionMask::Keep(&keep)).key_padding_mask(&is_padding);
    assert_close(&weights(masks), &causal);
    let bias = tape.constant(Tensor::full([3, 3], f64::NEG_INFINITY).triu(1));
    let masks = AttentionMasks::new().mask(AttentionMask::Add(&bias)).key_padding_mask(&is_padding);
    assert_close(&weights(masks), &causal);
    let by_example = keep.expand([2, 3, 3]);
    let masks = AttentionMasks::new().mask(AttentionMask::Keep(&by_example)).key_padding_mask(&is_padding);
    assert_close(&weights(masks), &causal);
    let by_head = keep.expand([4, 3, 3]);
    let masks = AttentionMasks::new().mask(AttentionMask::Keep(&by_head)).key_padding_mask(&is_padding);
    assert_close(&weights(masks), &causal);
}

#[test]
fn decoding_gives_the_same_as_causal_attention() {
    for layer in [
        layer(MultiheadAttention::builder(4, 2).batch_first()),
        layer(MultiheadAttention::builder(4, 2)),
        layer(MultiheadAttention::builder(4, 2).bias(false)),
    ] {
        let (tape, axis) = (Tape::new(), if layer.batch_first { 1 } else { 0 });
        let x = tape.constant(random(if layer.batch_first { &[2, 6, 4] } else { &[6, 2, 4] }));
        let whole = layer.self_attend(x, AttentionMasks::causal()).value();
        let mut cache = AttentionCache::new();
        let mut start = 0;
        for length in [2, 1, 2, 1] {
            let y = layer.decode(x.narrow(axis, start, length), &mut cache);
            assert_close(&y.value(), &whole.narrow(axis, start, length));
            start += length;
        }
        assert_eq!(cache.len(), 6);
    }
}

#[test]
fn attention_to_a_cached_memory_gives_the_same() {
    let layer = layer(MultiheadAttention::builder(4, 2).kdim(3).vdim(3).batch_first());
    let tape = Tape::new();
    let (x, memory) = (tape.constant(random(&[2, 3, 4])), tape.constant(random(&[2, 5, 3])));
    let is_padding = Tensor::<bool>::from([[false, true, true, true, false], [false; 5]]);
    let masks = AttentionMasks::new().key_padding_mask(&is_padding);
    let expected = layer.attend(x, memory, memory, masks).value();
    assert_close(&layer.attend_cached(x, &layer.memory(memory), Some(&is_padding)).value(), &expected);
}

#[test]
fn derivatives_pass_the_gradient_check() {
    let layer = layer(MultiheadAttention::builder(4, 2).batch_first());
    gradcheck(|[x]| layer.self_attend(x, AttentionMasks::causal()), [&random(&[2, 3, 4])]).unwrap();
    let mut model = layer.clone();
    crate::layers::testing::gradients(&mut model, |layer, tape| {
        let (x, memory) = (tape.constant(random(&[2, 3, 4])), tape.constant(random(&[2, 5, 4])));
        layer.attend(x, memory, memory, AttentionMasks::new())
    });
}

#[test]
fn dropout_drops_weights_in_training_only() {
    let layer = layer(MultiheadAttention::builder(4, 2).dropout(0.5));
    let weights = |tape: Tape<f64>| {
        let x = tape.constant(random(&[6, 2, 4]));
        layer.self_attend_with_weights(x, AttentionMasks::new()).1.value()
    };
    assert!(weights(Tape::new()).iter().all(|weight| weight > 0.0));
    assert!(weights(Tape::training(&mut Generator::new(0))).iter().any(|weight| weight == 0.0));
}

#[test]
fn paths_initial_bounds_and_errors() {
    let paths = |layer: &MultiheadAttention| layer.leaves().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    let generator = &mut Generator::new(0);
    let own: MultiheadAttention = MultiheadAttention::new(8, 2, generator);
    assert_eq!(paths(&own), ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]);
    let bound = 6f32.sqrt() / 32f32.sqrt();
    let weight = || own.in_proj_weight.as_ref().unwrap().value.iter();
    assert!(weight().all(|w| w.abs() <= bound) && weight().any(|w| w.abs() > 0.9 * bound));
    let others: MultiheadAttention = MultiheadAttention::builder(8, 2).kdim(3).bias(false).build(generator);
    assert_eq!(paths(&others), ["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"]);

    let tape = Tape::new();
    let zeros = |shape: &[usize]| tape.constant(Tensor::zeros(shape));
    let padding = Tensor::<f64>::zeros([2, 4]).gt(0.0);
    let masks = AttentionMasks::new().key_padding_mask(&padding);
    for (result, expected) in [
        (own.try_forward(zeros(&[8])), "Expected inputs of 2 or 3 dimensions"),
        (own.try_forward(zeros(&[5, 2, 7])), "MultiheadAttention(8, 2) on inputs of shapes [5, 2, 7]"),
        (own.try_self_attend(zeros(&[5, 2, 8]), masks), "Expected key_padding_mask of shape [2, 5], but got [2, 4]"),
        (
            own.try_attend(zeros(&[5, 2, 8]), zeros(&[3, 1, 8]), zeros(&[3, 1, 8]), AttentionMasks::new()),
            "expected equal numbers of examples",
        ),
        (others.try_forward(zeros(&[5, 2, 8])), "cannot be multiplied"),
    ] {
        let text = result.unwrap_err().to_string();
        assert!(text.contains(expected) && text.contains("attention/tests.rs"), "{text}");
    }
}

#[test]
fn a_mask_of_three_dimensions_has_a_part_for_each_example_or_each_head_of_each_example() {
    let (layer, tape) = (layer(MultiheadAttention::builder(4, 2).batch_first()), Tape::new());
    let x = |n: usize| tape.constant(random(&[n, 3, 4]));
    let weights = |n: usize, keep: &Tensor<bool>| {
        let masks = AttentionMasks::new().mask(AttentionMask::Keep(keep));
        layer.try_self_attend_with_weights(x(n), masks).map(|(_, weights)| weights.value())
    };
    // Head 0 sees the keys up to the query, and head 1 sees the keys from the query on.
    let by_head = Tensor::<bool>::from([
        [[true, false, false], [true, true, false], [true, true, true]],
        [[true, true, true], [false, true, true], [false, false, true]],
    ]);
    for n in [2, 3] {
        let four = weights(n, &by_head.unsqueeze(0)).unwrap();
        assert!(
            four.select(1, 0).get(&[n - 1, 0, 2]) == Some(0.0) && four.select(1, 1).get(&[n - 1, 2, 0]) == Some(0.0)
        );
    }
    let text = weights(3, &by_head).unwrap_err().to_string();
    assert!(
        text.contains("The shape of the 3D attn_mask is [2, 3, 3], but should be [3, 3, 3] or [6, 3, 3]"),
        "{text}"
    );
    assert!(text.contains("[1, 2, 3, 3]"), "{text}");
    assert_eq!(weights(1, &by_head).unwrap(), weights(1, &by_head.unsqueeze(0)).unwrap());
    // A size of 1 broadcasts.
    let row = Tensor::<bool>::from([[[true, true, false]]]);
    assert_eq!(weights(2, &row.expand([4, 1, 3])).unwrap(), weights(2, &row).unwrap());
}

#[test]
#[should_panic(expected = "Invalid p value: 1.5; expected a probability from 0 to 1")]
fn a_probability_above_1_is_refused_when_the_layer_is_built() {
    layer(MultiheadAttention::builder(4, 2).dropout(1.5));
}
