//! 14. Fine-tuning: weights that PyTorch saved, frozen, and a new head that learns from few examples.
//!
//! `digits_0_to_4.safetensors` holds a network that PyTorch trained on the digits 0 to 4 (see `make_digits_0_to_4.py` beside it), in half
//! precision. Whether what its layers learned is of use for the digits 5 to 9, of which we pretend to have a few each, is a question that
//! only a comparison with a network that begins anew can answer.

use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::nn::{Checkpoint, Flatten};
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, digits, run};

const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits_0_to_4.safetensors");

fn main() -> ExitCode {
    let options = Options::new("14_fine_tuning", "A network of PyTorch's, frozen, with a new head");
    let options = options.option("each", 3, "Samples of each new digit to learn from");
    run(options.option("steps", 150, "Number of training steps"), fine_tune)
}

/// The network as PyTorch's script has it: the paths of the parameters are the same.
#[derive(Module)]
struct Network {
    features: Sequential,
    head: Linear,
}

impl Network {
    fn new(generator: &mut Generator) -> Self {
        let features = Sequential::new()
            .add(Conv2d::builder(1, 16, 3).padding(1).build(generator))
            .add(ReLU)
            .add(MaxPool2d::new(2))
            .add(Conv2d::builder(16, 32, 3).padding(1).build(generator))
            .add(ReLU)
            .add(MaxPool2d::new(2))
            .add(Flatten::default())
            .add(Linear::new(128, 64, generator))
            .add(ReLU);
        Network { features, head: Linear::new(64, 5, generator) }
    }

    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        self.head.forward(self.features.forward(x))
    }
}

fn fine_tune(options: &Options) -> Result {
    let (steps, each): (usize, usize) = (options.get("steps")?, options.get("each")?);
    let generator = &mut Generator::new(options.seed());
    let (train, test) = digits(DIGITS, generator)?;

    // PyTorch's network in our hands: it reads 0 to 4 as it did there.
    let mut loaded = Network::new(generator);
    Checkpoint::open(WEIGHTS)?.convert().load_model(&mut loaded)?; // f16 to f32
    let low = some(test.inputs(), test.targets(), 0..5, usize::MAX);
    println!("as loaded, on the held-out digits 0 to 4: {:.1}% right", share(&loaded, &low));

    // The digits 5 to 9 are the classes 0 to 4 of the new task.
    let few = some(train.inputs(), train.targets(), 5..10, each);
    let rest = some(test.inputs(), test.targets(), 5..10, usize::MAX);
    println!("new task: {} digits 5 to 9 to train on, {} held out\n", few.1.numel(), rest.1.numel());

    // A: everything begins anew.
    let mut scratch = Network::new(generator);
    train_on(&mut scratch, &few, steps, generator);
    let from_scratch = share(&scratch, &rest);
    println!("A. from scratch, {} numbers learned: {from_scratch:.1}% right", scratch.num_parameters());

    // B: PyTorch's features stay as they are; only the new head learns.
    loaded.head = Linear::new(64, 5, generator);
    loaded.freeze("features");
    let before = loaded.features.parameters()[0].value.clone();
    train_on(&mut loaded, &few, steps, generator);
    let frozen = share(&loaded, &rest);
    println!("B. frozen features, {} numbers learned: {frozen:.1}% right", loaded.head.num_parameters());
    assert_eq!(loaded.features.parameters()[0].value, before);

    // C: then everything, at a tenth of the pace.
    loaded.unfreeze("features");
    let mut adam = AdamW::new(3e-4);
    for _ in 0..steps {
        step(&mut loaded, &mut adam, &few, generator);
    }
    let tuned = share(&loaded, &rest);
    println!("C. then all of it, slowly: {tuned:.1}% right");
    if tuned > from_scratch {
        println!("What PyTorch's network learned is of use here.");
    } else {
        println!(
            "Features that tell 0 to 4 apart leave out what tells 5 to 9 apart: so small a network had better begin anew."
        );
    }

    let path = options.file("digits_5_to_9.safetensors")?;
    save(&loaded, &path)?;
    println!("\nwrote {}, which PyTorch reads: safetensors.torch.load_file", path.display());
    Ok(())
}

type Samples = (Tensor, Tensor<i64>);

/// The first `each` samples of every class in `classes`, as images; the classes count from 0. PyTorch's network was trained on pixels from
/// -1 to 1, so it gets the same here.
fn some(inputs: &Tensor, targets: &Tensor<i64>, classes: std::ops::Range<i64>, each: usize) -> Samples {
    let mut left = [each; 10];
    let chosen = targets.iter().enumerate().filter(|(_, class)| {
        let room = classes.contains(class) && left[*class as usize] > 0;
        left[*class as usize] -= usize::from(room);
        room
    });
    let chosen = Tensor::from(chosen.map(|(row, _)| row as i64).collect::<Vec<_>>());
    let images = inputs.index_select(0, &chosen).reshape([-1, 1, 8, 8]);
    (images * 2.0 - 1.0, targets.index_select(0, &chosen) - classes.start)
}

fn step(network: &mut Network, adam: &mut Adam, (x, y): &Samples, generator: &mut Generator) {
    let (_, gradients) =
        Tape::training(generator).value_and_gradients(|tape| cross_entropy(&network.forward(tape.constant(x)), y));
    adam.step(network, &gradients);
}

fn train_on(network: &mut Network, samples: &Samples, steps: usize, generator: &mut Generator) {
    let mut adam = AdamW::new(3e-3);
    for _ in 0..steps {
        step(network, &mut adam, samples, generator);
    }
}

/// The share of right answers, in percent.
fn share(network: &Network, (x, y): &Samples) -> f64 {
    100.0 * accuracy(&infer(|x| network.forward(x), x), y)
}
