//! 22. A small transformer that writes better text than the recurrent network, from the same text and the same number of steps.
//!
//! New: attention. Every character looks at all earlier characters at once, so the training has no loop over positions. Writing
//! has a loop. A cache keeps the results of earlier characters, so only one row is computed for each new character.
//!
//! The blocks are written out here in plain operations. `wengert::nn` has them ready: `TransformerEncoder`,
//! `MultiheadAttention`.

use std::process::ExitCode;

use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{Fit, Schedule};
use wengert::prelude::*;
use wengert::tensor::ops::AttentionMask;
use wengert_course::{Options, PLAY, Result, draw, run, text};

fn main() -> ExitCode {
    let options = Options::new("22_transformer_text", "A small transformer that writes text");
    let options = options.text("text", PLAY, "File to learn from [default: a play]");
    let options = options.count("epochs", 3, "Epochs of 100 batches");
    let options = options.positive("lr", 1e-2, "Largest learning rate");
    run(options.positive("temperature", 0.7, "Below 1 prefers likely characters, above 1 unlikely ones"), write_text)
}

const WIDTH: usize = 64;
const HEADS: usize = 8;
const BLOCKS: usize = 2;
const LENGTH: usize = 64;

/// A block: attention, then two layers for each position. Both results are added to their input.
#[derive(Module)]
struct Block {
    norm1: LayerNorm,
    qkv: Linear,
    /// The score of each head for each distance to an earlier character, `[HEADS, LENGTH]`. (Raffel et al. 2020, "T5", 2.1)
    back: Parameter,
    out: Linear,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
}

/// Keys and values of the characters so far, `[rows, HEADS, seen, WIDTH / HEADS]` each.
type Cache = Option<[Tensor; 2]>;

impl Block {
    fn new(generator: &mut Generator) -> Self {
        Block {
            norm1: LayerNorm::new(WIDTH),
            qkv: Linear::new(WIDTH, 3 * WIDTH, generator),
            // Before the training, most heads look mainly at one position: the character itself, the one before, ... The last two heads
            // look everywhere.
            back: Parameter::new(Tensor::from_fn([HEADS, LENGTH], |i| {
                if i[0] < HEADS - 2 { -(i[0].abs_diff(i[1]) as f32) } else { 0.0 }
            })),
            out: Linear::new(WIDTH, WIDTH, generator),
            norm2: LayerNorm::new(WIDTH),
            up: Linear::new(WIDTH, 4 * WIDTH, generator),
            down: Linear::new(4 * WIDTH, WIDTH, generator),
        }
    }

    /// Maps `x` `[rows, new, WIDTH]`, the characters after the cached ones, to outputs of the same shape. Adds their
    /// keys and values to the cache, if there is one.
    fn forward<'t>(&self, x: Var<'t>, cache: Option<&mut Cache>) -> Var<'t> {
        let [rows, new, _] = *x.shape().sizes() else { panic!("expected [rows, length, width], got {}", x.shape()) };
        let tape = x.tape();
        let heads = |y: Var<'t>| y.reshape([rows, new, HEADS, WIDTH / HEADS]).transpose(1, 2);
        let [query, mut key, mut value] = self.qkv.forward(self.norm1.forward(x)).chunk_into(-1).map(heads);
        if let Some(cache) = cache {
            if let Some([keys, values]) = cache {
                key = cat(&[tape.constant(keys), key], 2);
                value = cat(&[tape.constant(values), value], 2);
            }
            *cache = Some([key.value(), value.value()]);
        }

        // The distance from every new position to every position so far. Later positions are masked.
        let seen = key.shape()[2];
        let to = Tensor::<i64>::arange(seen);
        let from = to.narrow(0, seen - new, new).unsqueeze(1).expand([new, seen]);
        let distance = from - &to;
        let hidden = where_(&distance.lt(0), &Tensor::scalar(f32::NEG_INFINITY), Tensor::scalar(0.0));
        let back = tape.parameter(&self.back).index_select(1, &distance.maximum(0).flatten(0, 1));
        let mask = back.reshape([HEADS, new, seen]) + hidden;

        let seen = query.scaled_dot_product_attention(key, value, AttentionMask::Add(&mask), None);
        let x = x + self.out.forward(seen.transpose(1, 2).reshape([rows, new, WIDTH]));
        x + self.down.forward(self.up.forward(self.norm2.forward(x)).gelu())
    }
}

#[derive(Module)]
struct Writer {
    embedding: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
}

impl Writer {
    fn new(characters: usize, generator: &mut Generator) -> Self {
        Writer {
            embedding: Embedding::new(characters, WIDTH, generator),
            blocks: (0..BLOCKS).map(|_| Block::new(generator)).collect(),
            norm: LayerNorm::new(WIDTH),
            head: Linear::new(WIDTH, characters, generator),
        }
    }

    /// Maps characters `[rows, length]`, after the cached ones if there are any, to scores
    /// `[rows, length, characters]` of the next characters.
    fn forward<'t>(&self, tape: &'t Tape, x: &Tensor<i64>, caches: &mut [Cache]) -> Var<'t> {
        let mut x = self.embedding.forward(tape, x);
        for (number, block) in self.blocks.iter().enumerate() {
            x = block.forward(x, caches.get_mut(number));
        }
        self.head.forward(self.norm.forward(x))
    }

    /// Continues `start` up to LENGTH characters in total, because a head has scores for LENGTH distances.
    fn write(&self, start: &[i64], temperature: f64, generator: &mut Generator) -> Vec<i64> {
        let (mut caches, mut written, mut seen) = ([const { None }; BLOCKS], start.to_vec(), 0);
        while written.len() < LENGTH {
            let new = Tensor::from(&written[seen..]).unsqueeze(0);
            seen = written.len();
            let tape = Tape::new();
            let scores = self.forward(&tape, &new, &mut caches).select(1, -1).squeeze(0);
            written.push(draw(&scores.value(), temperature, generator));
        }
        written
    }
}

fn write_text(options: &Options) -> Result {
    let epochs: u64 = options.get("epochs");
    let (lr, temperature): (f64, f64) = (options.get("lr"), options.get("temperature"));
    let generator = &mut Generator::new(options.seed());
    let (vocabulary, train, test) = text(options.get::<String>("text"), LENGTH, options.seed())?;
    let mut model = Writer::new(vocabulary.len(), generator);
    let steps = epochs * train.len() as u64;
    Fit::new(epochs)
        .validation(&test)
        .schedule_steps(CosineAnnealingLR::new(lr, steps.saturating_sub(20).max(1)).warmup(20))
        .clip_norm(1.0)
        .folder(options.folder()?) // Writes checkpoints.
        .run(
            &mut model,
            &mut AdamW::new(lr),
            &train,
            generator,
            |model, tape, x| model.forward(tape, x, &mut []).flatten(0, 1),
            |scores, y| cross_entropy(&scores, &y.flatten(0, 1)),
        )?;

    // Each new piece of the text begins with the end of the last piece.
    let mut written = vocabulary.encode("MENENIUS:\n")?.to_vec();
    while written.len() < 400 {
        let start = written.split_off(written.len() - written.len().min(LENGTH / 2));
        written.extend(model.write(&start, temperature, generator));
    }
    let written = vocabulary.decode(&Tensor::from(written));
    println!("\n{written}\n");
    options.write("text.txt", written)
}
