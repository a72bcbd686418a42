//! 12. A small transformer that writes better text than the recurrent network, from the same text and the same number of steps.
//!
//! New is attention: every character looks at all those before it, at once, so that training has no loop over places. Writing has one;
//! a cache keeps what was computed for the characters so far, and each new one costs a single row.

use std::process::ExitCode;
use std::time::Instant;

use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{AttentionMasks, Schedule, TransformerEncoder, TransformerOptions, sinusoidal_positions};
use wengert::prelude::*;
use wengert_course::{Options, PLAY, Result, Text, draw, run};

fn main() -> ExitCode {
    let options = Options::new("12_transformer_text", "A small transformer that writes text");
    let options = options.option("text", PLAY, "Text to learn from").option("steps", 400, "Number of training steps");
    let options = options
        .option("lr", 6e-3, "Largest learning rate")
        .option("width", 64, "")
        .option("layers", 2, "")
        .option("rows", 32, "");
    run(options.option("temperature", 0.7, "Below 1: careful, above 1: adventurous"), write_text)
}

const LENGTH: usize = 64;

#[derive(Module)]
struct Writer {
    embedding: Embedding,
    blocks: TransformerEncoder,
    head: Linear,
    /// Sines of the places, `[LENGTH, width]`, added to the characters.
    #[module(skip)]
    positions: Tensor,
}

impl Writer {
    fn new(characters: usize, width: usize, layers: usize, generator: &mut Generator) -> Self {
        let options = TransformerOptions::new(width, 4).dim_feedforward(2 * width).dropout(0.0).gelu();
        let options = options.norm_first().final_norm().batch_first();
        Writer {
            embedding: Embedding::new(characters, width, generator),
            blocks: TransformerEncoder::new(&options, layers, generator),
            head: Linear::new(width, characters, generator),
            positions: sinusoidal_positions(LENGTH, width),
        }
    }

    /// Characters `[rows, length]` to scores of the next ones, `[rows, length, characters]`.
    fn forward<'t>(&self, tape: &'t Tape, x: &Tensor<i64>) -> Var<'t> {
        let x = self.embedding.forward(tape, x) + self.positions.narrow(0, 0, x.shape()[1] as isize);
        self.head.forward(self.blocks.forward_masked(x, AttentionMasks::causal()))
    }

    /// The mean loss of each character, in nats.
    fn loss<'t>(&self, tape: &'t Tape, [x, y]: &[Tensor<i64>; 2]) -> Var<'t> {
        cross_entropy(&self.forward(tape, x).flatten(0, 1), &y.flatten(0, 1))
    }

    /// Goes on where `start` ends, up to the longest text that it can see at once.
    fn write(&self, start: &[i64], temperature: f64, generator: &mut Generator) -> Vec<i64> {
        let (mut caches, mut written) = (self.blocks.caches(), start.to_vec());
        let mut seen = 0;
        while written.len() < LENGTH {
            let tape = Tape::new();
            let new = Tensor::from(&written[seen..]);
            let places = self.positions.narrow(0, seen as isize, new.numel() as isize);
            let x = self.embedding.forward(&tape, &new.unsqueeze(0)) + places;
            let scores = self.head.forward(self.blocks.decode(x, &mut caches));
            seen = written.len();
            written.push(draw(&scores.select(1, -1).squeeze(0).value(), temperature, generator));
        }
        written
    }
}

fn write_text(options: &Options) -> Result {
    let (steps, temperature): (u64, f64) = (options.get("steps")?, options.get("temperature")?);
    let generator = &mut Generator::new(options.seed());
    let text = Text::read(options.get::<String>("text")?, 20 * LENGTH)?;
    let mut model = Writer::new(text.characters.len(), options.get("width")?, options.get("layers")?, generator);
    println!("{} characters, {} different ones", text.train.numel() + text.test.numel(), text.characters.len());

    let mut adam = AdamW::new(1e-3);
    let lr: f64 = options.get("lr")?;
    let schedule = CosineAnnealingLR::new(lr, steps.saturating_sub(30)).warmup(30);
    let held_out = text.held_out(LENGTH);
    let start = Instant::now();
    for step in 0..=steps {
        if step % 100 == 0 || step == steps {
            println!("step {step:>4}   held out: {:.3} nats a character", model.loss(&Tape::new(), &held_out).item());
        }
        adam.set_lr(schedule.lr(step));
        let batch = text.batch(options.get("rows")?, LENGTH, generator);
        let (_, mut gradients) = Tape::training(generator).value_and_gradients(|tape| model.loss(tape, &batch));
        gradients.clip_norm(1.0);
        adam.step(&mut model, &gradients);
    }
    eprintln!("{:?}", start.elapsed());

    // It sees at most LENGTH characters: what it wrote last begins the next piece.
    let mut written = text.encode("MENENIUS:\n")?.to_vec();
    while written.len() < 400 {
        let start = written.split_off(written.len() - written.len().min(LENGTH / 2));
        written.extend(model.write(&start, temperature, generator));
    }
    let written = text.decode(written);
    println!("\n{written}\n");
    let path = options.file("text.txt")?;
    std::fs::write(&path, written)?;
    println!("wrote {}", path.display());
    Ok(())
}
