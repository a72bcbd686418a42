//! 25. Fine-tuning: frozen layers from PyTorch, and a new head that learns from few labels.
//!
//! Images are cheap, but labels are not. `digit_features.safetensors` has layers that PyTorch trained on 1,200 digits without
//! labels (see `make_digit_features.py` beside it), in half precision. The example uses the labels of only a few other digits.
//! It compares the result with a network that learns from these labels alone.

use std::process::ExitCode;

use wengert::nn::{Checkpoint, Flatten, Normalize};
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, run};

const WEIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digit_features.safetensors");
/// The number of rows that PyTorch trained on.
const SEEN: usize = 1200;

fn main() -> ExitCode {
    let options = Options::new("25_fine_tuning", "Frozen layers from PyTorch with a new head");
    let options = options.count_in("each", 3, [1, 40], "Labelled samples of each digit");
    run(options.count("steps", 150, "Number of training steps"), fine_tune)
}

/// The network of the script `make_digit_features.py`: the parameters of `features` have the same paths as in the file of weights.
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
        Network { features, head: Linear::new(64, 10, generator) }
    }

    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        self.head.forward(self.features.forward(x))
    }
}

fn fine_tune(options: &Options) -> Result {
    let (steps, each): (usize, usize) = (options.get("steps"), options.get("each"));
    let generator = &mut Generator::new(options.seed());
    let data = Samples::read_csv(DIGITS, 10)?.subset(&(SEEN..1797).collect::<Vec<_>>())?;
    // PyTorch's layers were trained on pixels from -1 to 1.
    let data = data.normalized(&Normalize::range(0.0, 16.0))?;
    let (labelled, held_out) = few_of_each(data.targets(), each, generator);
    let (train, test) = (data.subset(&labelled)?, data.subset(&held_out)?);
    println!("{} labelled digits to train on, {} held out\n", train.len(), test.len());

    // A: random initial weights.
    let mut scratch = Network::new(generator);
    let mut pretrained = Network::new(generator);
    train_on(&mut scratch, &train, steps, 3e-3, generator);
    let from_nothing = percent(&scratch, &test);
    println!("A. random initial weights, {} numbers learned: {from_nothing:.1}% right", scratch.num_parameters());

    // B: the layers from PyTorch stay frozen; only the head learns.
    Checkpoint::open(WEIGHTS)?.convert().partial().load_model(&mut pretrained)?; // f16 to f32; the file has no head
    pretrained.freeze("features");
    let before = pretrained.features.parameters()[0].value.clone();
    train_on(&mut pretrained, &train, steps, 3e-3, generator);
    assert_eq!(pretrained.features.parameters()[0].value, before);
    let frozen = percent(&pretrained, &test);
    println!("B. frozen features, {} numbers learned: {frozen:.1}% right", pretrained.head.num_parameters());

    // C: then all layers learn, at a tenth of the learning rate.
    pretrained.unfreeze("features");
    train_on(&mut pretrained, &train, steps, 3e-4, generator);
    println!("C. then all layers, slowly: {:.1}% right", percent(&pretrained, &test));
    println!("\nPyTorch's layers and {} labels: {:+.1} points.", train.len(), frozen - from_nothing);

    let path = options.file("digits.safetensors")?;
    save(&pretrained, &path)?;
    println!("wrote {}, which PyTorch reads: safetensors.torch.load_file", path.display());
    Ok(())
}

/// Returns the indices of `each` random samples of every class, and the indices of the other samples.
fn few_of_each(classes: &Tensor<i64>, each: usize, generator: &mut Generator) -> (Vec<usize>, Vec<usize>) {
    let classes = classes.to_vec();
    let mut left = [each; 10];
    generator.permutation(classes.len()).into_iter().partition(|&sample| {
        let left = &mut left[classes[sample] as usize];
        let taken = *left > 0;
        *left -= usize::from(taken);
        taken
    })
}

fn train_on(network: &mut Network, samples: &Samples, steps: usize, lr: f64, generator: &mut Generator) {
    let (x, y, mut adam) = (images(samples), samples.targets(), AdamW::new(lr));
    for _ in 0..steps {
        let (_, gradients) =
            Tape::training(generator).value_and_gradients(|tape| cross_entropy(&network.forward(tape.constant(&x)), y));
        adam.step(network, &gradients);
    }
}

fn images(samples: &Samples) -> Tensor {
    samples.inputs().reshape([-1, 1, 8, 8])
}

/// Returns the percentage of right answers.
fn percent(network: &Network, samples: &Samples) -> f64 {
    100.0 * accuracy(&infer(|x| network.forward(x), &images(samples)), samples.targets())
}
