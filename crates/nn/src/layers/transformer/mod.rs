//! Transformers: encoder and decoder layers, stacks of them, and both stacks together (Vaswani et al. 2017, "Attention Is All You Need"). The
//! option to normalize before attention and not after it follows Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".

mod decoder;
mod encoder;
mod encoder_decoder;
mod options;

pub use decoder::{DecoderCache, TransformerDecoder, TransformerDecoderLayer};
pub use encoder::{TransformerEncoder, TransformerEncoderLayer};
pub use encoder_decoder::Transformer;
pub use options::TransformerOptions;

#[cfg(test)]
mod tests {
    use wengert_autograd::prelude::*;
    use wengert_tensor::ops::AttentionMask;

    use super::*;
    use crate::layers::attention::AttentionMasks;
    use crate::layers::layer::Layer as _;
    use crate::{Generator, Module};

    fn options() -> TransformerOptions {
        TransformerOptions::new(4, 2).dim_feedforward(6).batch_first()
    }

    fn random(shape: &[usize]) -> Tensor<f64> {
        Tensor::uniform(-1.0, 1.0, shape, &mut Generator::new(shape.iter().sum::<usize>() as u64))
    }

    #[track_caller]
    fn assert_close(got: &Tensor<f64>, want: &Tensor<f64>) {
        assert_eq!(got.shape(), want.shape());
        // The bound allows for rounding in sums of at most a hundred terms. The normalization divides by standard deviations of about 1.
        let off = (got - want).abs().iter().max_by(f64::total_cmp).unwrap_or(0.0);
        assert!(off < 1e-12, "{off}");
    }

    #[test]
    #[should_panic(expected = "Invalid p value: NaN; expected a probability from 0 to 1")]
    fn a_probability_that_is_not_a_number_is_refused_when_a_layer_is_made() {
        TransformerEncoderLayer::<f64>::new(&options().dropout(f64::NAN), &mut Generator::new(0));
    }

    #[test]
    fn decoding_gives_the_same_as_causal_attention() {
        let generator = &mut Generator::new(0);
        for options in [options(), options().norm_first().gelu().final_norm()] {
            let tape = Tape::new();
            let (x, memory) = (tape.constant(random(&[2, 5, 4])), tape.constant(random(&[2, 3, 4])));
            let is_padding = Tensor::<bool>::from([[false, false, true], [false; 3]]);
            let encoder = TransformerEncoder::new(&options, 2, generator);
            let decoder = TransformerDecoder::new(&options, 2, generator);
            let encoded = encoder.forward_masked(x, AttentionMasks::causal()).value();
            let memory_masks = AttentionMasks::new().key_padding_mask(&is_padding);
            let decoded = decoder.forward(x, memory, AttentionMasks::causal(), memory_masks).value();
            let (mut own, mut others) = (encoder.caches(), decoder.caches(memory, Some(&is_padding)));
            for step in 0..5 {
                let now = x.narrow(1, step, 1);
                assert_close(&encoder.decode(now, &mut own).value(), &encoded.narrow(1, step, 1));
                assert_close(&decoder.decode(now, &mut others).value(), &decoded.narrow(1, step, 1));
            }
            assert_eq!(others[1].len(), 5);
        }
    }

    #[test]
    fn dropout_acts_in_training_only() {
        let layer = TransformerEncoderLayer::new(&options(), &mut Generator::new(0));
        let evaluated = |tape: Tape<f64>| layer.forward(tape.constant(random(&[2, 5, 4]))).value();
        assert_eq!(evaluated(Tape::new()), evaluated(Tape::new()));
        assert_ne!(evaluated(Tape::training(&mut Generator::new(1))), evaluated(Tape::new()));
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        let mut layer = TransformerDecoderLayer::new(&options().gelu().dropout(0.0), &mut Generator::new(0));
        crate::layers::testing::gradients(&mut layer, |layer, tape| {
            let (x, memory) = (tape.constant(random(&[1, 3, 4])), tape.constant(random(&[1, 2, 4])));
            layer.forward(x, memory, AttentionMasks::causal(), AttentionMasks::new())
        });
    }

    #[test]
    fn paths_are_pytorchs() {
        let paths = |module: &dyn Module<f64>| module.leaves().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        let stack = TransformerDecoder::new(&options().final_norm(), 1, &mut Generator::new(0));
        let attention = |name: &str| {
            ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]
                .map(|p| format!("layers.0.{name}.{p}"))
        };
        let rest = ["linear1", "linear2", "norm1", "norm2", "norm3"]
            .map(|name| [format!("layers.0.{name}.weight"), format!("layers.0.{name}.bias")]);
        let mut expected = [attention("self_attn"), attention("multihead_attn")].concat();
        expected.extend(rest.into_iter().flatten());
        expected.extend(["norm.weight".to_owned(), "norm.bias".to_owned()]);
        assert_eq!(paths(&stack), expected);
        let layer = TransformerEncoderLayer::new(&options().bias(false), &mut Generator::new(0));
        let expected = ["self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight", "linear2.weight"];
        assert_eq!(paths(&layer)[..4], expected);
        assert_eq!(paths(&layer)[4..], ["norm1.weight", "norm2.weight"]);
    }

    #[test]
    fn a_mask_reaches_every_layer() {
        let encoder = TransformerEncoder::new(&options(), 2, &mut Generator::new(0));
        let tape = Tape::new();
        let x = random(&[1, 3, 4]);
        let keep = Tensor::<bool>::from([[true, false, false], [false, true, false], [false, false, true]]);
        let own = AttentionMasks::new().mask(AttentionMask::Keep(&keep));
        let y = encoder.forward_masked(tape.constant(&x), own).value();
        // Each position attends only to itself, so its output equals the output of a sequence of this position alone.
        let alone = encoder.forward(tape.constant(x.narrow(1, 1, 1))).value();
        assert_close(&y.narrow(1, 1, 1), &alone);
    }

    #[test]
    fn caches_of_another_stack_are_an_error() {
        let generator = &mut Generator::new(0);
        let (two, three) = (
            TransformerEncoder::<f64>::new(&options(), 2, generator),
            TransformerEncoder::new(&options(), 3, generator),
        );
        let tape = Tape::new();
        let error = three.try_decode(tape.constant(Tensor::ones([1, 1, 4])), &mut two.caches()).unwrap_err();
        assert!(error.to_string().contains("2 caches for a stack of 3 layers"), "{error}");
        let decoder = TransformerDecoder::<f64>::new(&options(), 2, generator);
        let memory = |size| tape.constant(Tensor::ones([1, 3, size]));
        assert_eq!(decoder.try_caches(memory(4), None).unwrap().len(), 2);
        assert!(decoder.try_caches(memory(5), None).is_err());
        // The shape of the padding is checked by the first step.
        let mut caches = decoder.try_caches(memory(4), Some(&Tensor::zeros([1, 2]))).unwrap();
        assert!(decoder.try_decode(tape.constant(Tensor::ones([1, 1, 4])), &mut caches).is_err());
    }

    #[test]
    fn a_failed_step_of_decoding_leaves_the_caches_as_they_were() {
        let (generator, tape) = (&mut Generator::new(0), Tape::new());
        let (x, memory) = (tape.constant(random(&[2, 1, 4])), tape.constant(random(&[2, 3, 4])));
        let wrong = || Tensor::zeros([5, 5]);

        let mut attention: crate::MultiheadAttention<f64> =
            crate::MultiheadAttention::builder(4, 2).batch_first().build(generator);
        let mut cache = crate::AttentionCache::new();
        let whole = std::mem::replace(&mut attention.out_proj.weight.value, wrong());
        assert!(attention.try_decode(x, &mut cache).is_err());
        assert!(cache.is_empty());
        attention.out_proj.weight.value = whole;
        let error = attention.try_attend_cached(x, &cache, None).unwrap_err();
        assert!(error.to_string().contains("the memory is empty: fill it by `memory`"), "{error}");
        attention.decode(x, &mut cache);
        assert_eq!(cache.len(), 1);

        let mut encoder = TransformerEncoder::new(&options(), 2, generator);
        let mut caches = encoder.caches();
        encoder.decode(x, &mut caches);
        encoder.layers[1].linear2.weight.value = wrong();
        assert!(encoder.try_decode(x, &mut caches).is_err());
        assert_eq!([caches[0].len(), caches[1].len()], [1, 1]);
        assert!(encoder.layers[1].try_decode(x, &mut caches[1]).is_err());
        assert_eq!(caches[1].len(), 1);

        let mut decoder = TransformerDecoder::new(&options(), 2, generator);
        let mut caches = decoder.caches(memory, None);
        decoder.decode(x, &mut caches);
        decoder.layers[1].linear2.weight.value = wrong();
        assert!(decoder.try_decode(x, &mut caches).is_err());
        assert_eq!([caches[0].len(), caches[1].len()], [1, 1]);
        assert!(decoder.layers[1].try_decode(x, &mut caches[1]).is_err());
        assert_eq!(caches[1].len(), 1);
    }
}
