//! 21. A recurrent network that writes text, one character after the other.
//!
//! New: sequences. Characters become vectors (`Embedding`), and a `GRU` carries a state from one character to the next. The
//! network is trained to predict the next character at every position. To write, the program draws a character from the
//! prediction and feeds it back.

use std::process::ExitCode;

use wengert::nn::Fit;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::prelude::*;
use wengert_course::{Options, PLAY, Result, draw, run, text};

fn main() -> ExitCode {
    let options = Options::new("21_gru_text", "A recurrent network that writes text");
    let options = options.text("text", PLAY, "File to learn from [default: a play]");
    let options = options.count("epochs", 3, "Epochs of 100 batches");
    let options = options.positive("lr", 1e-2, "Learning rate of the first step");
    run(options.positive("temperature", 0.7, "Below 1 prefers likely characters, above 1 unlikely ones"), write_text)
}

const WIDTH: usize = 64;
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

    /// Maps characters `[rows, length]` to scores of the next characters `[rows, length, characters]`, and returns the last
    /// state.
    fn forward<'t>(&self, tape: &'t Tape, x: &Tensor<i64>, state: Option<Var<'t>>) -> (Var<'t>, Var<'t>) {
        let (outputs, state) = self.gru.forward_from(self.embedding.forward(tape, x), state);
        (self.head.forward(outputs), state)
    }
}

fn write_text(options: &Options) -> Result {
    let epochs: u64 = options.get("epochs");
    let (lr, temperature): (f64, f64) = (options.get("lr"), options.get("temperature"));
    let generator = &mut Generator::new(options.seed());
    let (vocabulary, train, test) = text(options.get::<String>("text"), LENGTH, options.seed())?;
    let mut model = Writer::new(vocabulary.len(), generator);
    // The loss is the mean over the characters, in nats.
    Fit::new(epochs)
        .validation(&test)
        .schedule_steps(CosineAnnealingLR::new(lr, epochs * train.len() as u64))
        .clip_norm(1.0)
        .folder(options.folder()?) // Writes checkpoints.
        .run(
            &mut model,
            &mut AdamW::new(lr),
            &train,
            generator,
            |model, tape, x| model.forward(tape, x, None).0.flatten(0, 1),
            |scores, y| cross_entropy(&scores, &y.flatten(0, 1)),
        )?;

    // The state is the whole memory of the network, so each further character costs the same.
    let mut written = vocabulary.encode("MENENIUS:\n")?.to_vec();
    let (mut next, mut state) = (Tensor::from(&written[..]).unsqueeze(0), None);
    for _ in 0..300 {
        let tape = Tape::new();
        let (scores, last) = model.forward(&tape, &next, state.as_ref().map(|state| tape.constant(state)));
        let character = draw(&scores.select(1, -1).squeeze(0).value(), temperature, generator);
        state = Some(last.value());
        next = Tensor::from([[character]]);
        written.push(character);
    }
    let written = vocabulary.decode(&Tensor::from(written));
    println!("\n{written}\n");
    options.write("text.txt", written)
}
