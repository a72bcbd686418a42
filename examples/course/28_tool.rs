//! 28. From an experiment to a small tool: a file with all that an answer needs, and a program that another person can use.
//!
//! The first run trains the network and writes `digits.safetensors`. The file has the weights and the scale of the
//! pixels, because a network without its scale gives wrong answers. Later runs only load the file. The tool reads a
//! digit that is drawn with letters, prints its answer, and says "not sure" instead of guessing. A wrong line of the
//! drawing is an error that shows the number of the line.
//!
//! ```text
//! cargo run --release --example 28_tool -- --image drawing.txt
//! ```

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use wengert::nn::{Checkpoint, Fit, Progress, augment};
use wengert::prelude::*;
use wengert_course::{DIGITS, Options, Result, run};

/// The digit that is read without `--image`.
const SEVEN: &str = "\
.######.
.....##.
.....##.
...####.
....##..
...##...
..##....
..##....
";

/// An answer below this probability is "not sure".
const SURE: f32 = 0.6;

fn main() -> ExitCode {
    let options = Options::new("28_tool", "Reads a digit that is drawn with letters");
    let image = "File with 8 lines of 8 letters: `.` is paper, `#` is ink, `+` is between [default: a 7]";
    run(options.text("image", "", image).flag("train", "Train the network again"), tool)
}

/// A network and the largest pixel value of its training data. Pixels are divided by this value.
struct Reader {
    network: Sequential,
    ink: f64,
}

impl Reader {
    fn new(seed: u64) -> Self {
        Reader { network: Sequential::mlp(&[64, 128, 10], ReLU, &mut Generator::new(seed)), ink: 1.0 }
    }

    fn train(seed: u64) -> Result<Self> {
        let (mut reader, generator) = (Reader::new(seed), &mut Generator::new(seed));
        let data = Samples::<Tensor>::read_csv(DIGITS, 10)?;
        reader.ink = data.inputs().amax(..).item().into();
        let (train, test) = data.random_split(0.1, generator)?;
        let ink = reader.ink as f32;
        let batches = DataLoader::new(train, 32).shuffle().seed(seed).map(move |(x, y), generator| {
            let images = (x / ink).reshape([-1, 1, 8, 8]);
            Ok((augment::random_shift(&images, 1, generator)?.flatten(1, -1), y))
        });
        Fit::new(30).progress(Progress::Quiet).run(
            &mut reader.network,
            &mut AdamW::new(2e-3),
            &batches,
            generator,
            |network, tape, x| network.forward(tape.constant(x)),
            |scores, y| cross_entropy(&scores, y),
        )?;
        let scores = reader.network.forward(&(test.inputs() / ink));
        println!(
            "trained; {:.1}% of {} held-out digits are right",
            100.0 * accuracy(&scores, test.targets()),
            test.len()
        );
        Ok(reader)
    }

    fn save(&self, path: &Path) -> Result {
        Ok(Checkpoint::new().model(&self.network).number("ink", self.ink).save(path)?)
    }

    fn load(path: &Path) -> Result<Self> {
        let (saved, mut reader) = (Checkpoint::open(path)?, Reader::new(0));
        saved.load_model(&mut reader.network)?;
        reader.ink = saved.number("ink")?;
        Ok(reader)
    }

    /// Returns the most likely digit of an image `[8, 8]`, with pixels of the data's scale, and its probability.
    fn read(&self, image: &Tensor) -> (i64, f32) {
        let x = image.reshape([1, 64]) / self.ink as f32;
        let probabilities = self.network.forward(&x).softmax(1);
        (probabilities.argmax(1).item(), probabilities.amax(..).item())
    }
}

/// Returns the pixels `[8, 8]` of a drawing, from 0 to `ink`.
fn drawing(text: &str, name: &str, ink: f32) -> Result<Tensor> {
    let mut pixels = Vec::new();
    for (row, line) in text.lines().enumerate() {
        if line.chars().count() != 8 {
            return Err(format!("{name}:{}: expected 8 letters, got {}", row + 1, line.chars().count()).into());
        }
        for letter in line.chars() {
            pixels.push(match letter {
                '.' => 0.0,
                '+' => 0.5 * ink,
                '#' => ink,
                other => return Err(format!("{name}:{}: expected `.`, `+` or `#`, got `{other}`", row + 1).into()),
            });
        }
    }
    if pixels.len() != 64 {
        return Err(format!("{name}: expected 8 lines, got {}", pixels.len() / 8).into());
    }
    Ok(Tensor::from_vec(pixels, [8, 8]))
}

fn tool(options: &Options) -> Result {
    let path = options.file("digits.safetensors")?;
    let reader = match path.exists() && !options.get::<bool>("train") {
        true => Reader::load(&path)?,
        false => {
            let reader = Reader::train(options.seed())?;
            reader.save(&path)?;
            println!("wrote {}\n", path.display());
            reader
        }
    };
    let name: String = options.get("image");
    let text = match name.is_empty() {
        true => SEVEN.to_owned(),
        false => fs::read_to_string(&name).map_err(|error| format!("{name}: {error}"))?,
    };
    let (digit, probability) = reader.read(&drawing(&text, &name, reader.ink as f32)?);
    print!("{text}");
    match probability >= SURE {
        true => println!("this is a {digit} (probability {:.0}%)", 100.0 * probability),
        false => println!("not sure: a {digit} has only {:.0}%", 100.0 * probability),
    }
    Ok(())
}
