//! 11. `Fit`, the loop as a library, and a training run that survives an interruption.
//!
//! `Fit` runs the loop of the last examples. It writes its state after each epoch: the model, the state of the optimiser, the
//! random generator and the history. After Ctrl-C, a crash or a power failure, `--resume` goes on after the last complete epoch.
//! The result has the same bits as the result of a training run without an interruption.

use std::process::{self, ExitCode};

use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{Fit, Progress};
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

fn main() -> ExitCode {
    let options = Options::new("11_resume", "Trains, and can be killed and resumed");
    let options = options.count("epochs", 8, "Number of passes over the digits");
    let options = options.flag("resume", "Continue after the last complete epoch in the folder");
    let kill = "Ends the process after this epoch without any cleaning up; 0: never";
    run(options.count_in("kill", 0, [0, 1000], kill), train)
}

/// A model and everything else that a training run changes.
struct State {
    model: Sequential,
    adam: Adam,
    generator: Generator,
}

impl State {
    fn new(seed: u64) -> Self {
        let mut generator = Generator::new(seed);
        let model = Sequential::new()
            .add(Linear::new(64, 128, &mut generator))
            .add(ReLU)
            .add(Dropout::new(0.2))
            .add(Linear::new(128, 10, &mut generator));
        State { model, adam: AdamW::new(3e-3), generator }
    }
}

fn train(options: &Options) -> Result {
    let (epochs, kill): (u64, u64) = (options.get("epochs"), options.get("kill"));
    let (train, test) = digits(DIGITS, &mut Generator::new(options.seed()))?;
    let (train, test) = (DataLoader::new(train, 64).shuffle().seed(options.seed()), DataLoader::new(test, 512));
    let steps = epochs * train.len() as u64;
    let fit = |epochs| Fit::new(epochs).validation(&test).schedule_steps(CosineAnnealingLR::new(3e-3, steps));
    let run = |fit: Fit<'_>, state: &mut State| {
        let State { model, adam, generator } = state;
        fit.run(
            model,
            adam,
            &train,
            generator,
            |model, tape, x| model.forward(tape.constant(x)),
            |scores, y| cross_entropy(&scores, y),
        )
    };

    let folder = options.folder()?;
    let mut state = State::new(options.seed());
    let with_files = fit(if kill > 0 { kill.min(epochs) } else { epochs }).folder(&folder);
    let resume: bool = options.get("resume");
    run(if resume { with_files.resume() } else { with_files }, &mut state)?;
    if kill > 0 {
        println!("killed; go on with --resume");
        process::exit(137); // the exit code of a process that was killed
    }

    // Trains a second model without files and without an interruption.
    let mut other = State::new(options.seed());
    run(fit(epochs).progress(Progress::Quiet), &mut other)?;
    let mut both = state.model.named_parameters().into_iter().zip(other.model.named_parameters());
    let is_same = both.all(|(a, b)| a.1.value == b.1.value);
    println!("\nthe same bits as a run without an interruption: {is_same}");
    println!("the files are in {}", folder.display());
    if is_same { Ok(()) } else { Err("--resume found a run with other options: use another --out".into()) }
}
