//! 11. A recurrent network that writes text, one character after the other.
//!
//! New are sequences: characters become vectors (`Embedding`), a `GRU` carries a state from one to the next, and the network is
//! trained to say at every place what comes next. To write, it draws a character from what it said and reads it again.

use std::process::ExitCode;

use wengert::nn::Schedule;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::prelude::*;
use wengert_course::{Options, PLAY, Result, Text, draw, run};

fn main() -> ExitCode {
    let options = Options::new("11_gru_text", "A recurrent network that writes text");
    let options = options.option("text", PLAY, "Text to learn from").option("steps", 300, "Number of training steps");
    let options = options.option("lr", 1e-2, "Learning rate of the first step");
    run(options.option("temperature", 0.7, "Below 1: careful, above 1: adventurous"), write_text)
}

const WIDTH: usize = 64;
const ROWS: usize = 16;
const LENGTH: usize = 64;

#[derive(Module)]
struct Writer {
    embedding: Embedding,
    gru: GRU,
    head: Linear,
}

impl Writer {
    fn new(characters: usize, generator: &mut Generator) -> Self {
        Writer {
            embedding: Embedding::new(characters, WIDTH, generator),
            gru: GRU::builder(WIDTH, WIDTH).batch_first().build(generator),
            head: Linear::new(WIDTH, characters, generator),
        }
    }

    /// Characters `[rows, length]` to scores of the next ones `[rows, length, characters]`, with the last state.
    fn forward<'t>(&self, tape: &'t Tape, x: &Tensor<i64>, state: Option<Var<'t>>) -> (Var<'t>, Var<'t>) {
        let (outputs, state) = self.gru.forward_from(self.embedding.forward(tape, x), state);
        (self.head.forward(outputs), state)
    }

    /// The mean loss of each character, in nats.
    fn loss<'t>(&self, tape: &'t Tape, [x, y]: &[Tensor<i64>; 2]) -> Var<'t> {
        cross_entropy(&self.forward(tape, x, None).0.flatten(0, 1), &y.flatten(0, 1))
    }
}

fn write_text(options: &Options) -> Result {
    let (steps, temperature): (u64, f64) = (options.get("steps")?, options.get("temperature")?);
    let lr: f64 = options.get("lr")?;
    let generator = &mut Generator::new(options.seed());
    let text = Text::read(options.get::<String>("text")?, 20 * LENGTH)?;
    let mut model = Writer::new(text.characters.len(), generator);
    println!("{} characters, {} different ones", text.train.numel() + text.test.numel(), text.characters.len());

    let mut adam = AdamW::new(lr);
    let schedule = CosineAnnealingLR::new(lr, steps);
    let held_out = text.held_out(LENGTH);
    for step in 0..=steps {
        if step % 100 == 0 || step == steps {
            println!("step {step:>4}   held out: {:.3} nats a character", model.loss(&Tape::new(), &held_out).item());
        }
        if step == steps {
            break;
        }
        adam.set_lr(schedule.lr(step));
        let batch = text.batch(ROWS, LENGTH, generator);
        let (_, mut gradients) = Tape::training(generator).value_and_gradients(|tape| model.loss(tape, &batch));
        gradients.clip_norm(1.0);
        adam.step(&mut model, &gradients);
    }

    // The state is all that the network remembers, so that writing on costs the same at every place.
    let mut written = text.encode("MENENIUS:\n")?.to_vec();
    let (mut next, mut state) = (Tensor::from(&written[..]).unsqueeze(0), None);
    for _ in 0..400 {
        let tape = Tape::new();
        let (scores, last) = model.forward(&tape, &next, state.as_ref().map(|state| tape.constant(state)));
        let character = draw(&scores.select(1, -1).squeeze(0).value(), temperature, generator);
        state = Some(last.value());
        next = Tensor::from([[character]]);
        written.push(character);
    }
    let written = text.decode(written);
    println!("\n{written}\n");
    let path = options.file("text.txt")?;
    std::fs::write(&path, written)?;
    println!("wrote {}", path.display());
    Ok(())
}
