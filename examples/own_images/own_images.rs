//! A network for your own images: training, validation, saving, loading, and prediction.
//!
//! Put the images (PNG or JPEG, of any size) of each class in a folder with the name of the class:
//!
//! ```text
//! pets/cats/tom.png  pets/cats/kitty.jpg  …
//! pets/dogs/rex.jpg  …
//!
//! cargo run --release -p own_images -- --data pets
//! cargo run --release -p own_images -- --use somebody.jpg
//! ```
//!
//! Without `--data`, the example writes the digits of the repository to such a folder and uses it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::nn::metrics::{Accuracy, ConfusionMatrix, worst_mistakes};
use wengert::nn::plots::Page;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{EarlyStopping, Fit, ImageFolder, ImageReader, augment};
use wengert::prelude::*;

use course::{DIGITS, Options, Result, run};

/// The command-line options of the course's examples, and the parts that this example does not use.
#[allow(dead_code, unused_imports)]
#[path = "src/lib.rs"]
mod course;

/// The height and width of all images after resizing. They must be divisible by 4.
const SIZE: usize = 32;

fn main() -> ExitCode {
    let options = Options::new("own_images", "A network for your own images");
    let options = options.option("data", "", "Folder with a folder of images for each class [default: the digits]");
    let options = options.option("epochs", 10, "Number of passes over the images");
    run(options.option("use", "", "Image to use the trained network on"), |options| {
        match options.get::<PathBuf>("use")? {
            none if none.as_os_str().is_empty() => train(options),
            image => predict(options, &image),
        }
    })
}

/// A network that maps images `[n, 3, SIZE, SIZE]` to scores `[n, classes]`.
#[derive(Module)]
struct Cnn {
    conv1: Conv2d,
    norm1: BatchNorm2d,
    conv2: Conv2d,
    norm2: BatchNorm2d,
    fc: Linear,
}

impl Cnn {
    fn new(classes: usize, generator: &mut Generator) -> Self {
        let conv = |i, o, g: &mut Generator| Conv2d::builder(i, o, 3).padding(1).bias(false).build(g);
        Cnn {
            conv1: conv(3, 16, generator),
            norm1: BatchNorm2d::new(16),
            conv2: conv(16, 32, generator),
            norm2: BatchNorm2d::new(32),
            fc: Linear::new(32 * (SIZE / 4) * (SIZE / 4), classes, generator),
        }
    }

    fn forward<'t>(&self, x: Var<'t>) -> Var<'t> {
        let pool = MaxPool2d::new(2); // It halves the height and the width.
        let x = pool.forward(self.norm1.forward(self.conv1.forward(x)).relu());
        let x = pool.forward(self.norm2.forward(self.conv2.forward(x)).relu());
        self.fc.forward(x.flatten(1, -1))
    }
}

fn train(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let folder = match options.get::<PathBuf>("data")? {
        none if none.as_os_str().is_empty() => digits_as_images(&options.file("digits")?)?,
        folder => folder,
    };
    let images = ImageFolder::open(folder)?.resize([SIZE, SIZE]);
    let names = images.classes();
    let (train, test) = images.stratified_split(0.2, generator)?;
    println!("{} images to train on, {} held out, of the classes {}", train.len(), test.len(), names.join(", "));

    // A second thread reads files while the network learns from earlier ones.
    let train = DataLoader::new(train, 32)
        .shuffle()
        .seed(options.seed())
        .map(|(x, y), generator| Ok((augment::random_shift(&x, 2, generator)?, y)))
        .prefetch(2);
    let batches = DataLoader::new(test.clone(), 128).prefetch(2);
    let (epochs, out) = (u64::from(options.epochs()?), options.file("")?);
    let mut model = Cnn::new(names.len(), generator);
    let history = Fit::new(epochs)
        .validation(&batches)
        .metric("accuracy", Accuracy::new())
        .early_stopping("accuracy", EarlyStopping::new(5).maximize())
        .schedule_steps(CosineAnnealingLR::new(3e-3, epochs * train.len() as u64))
        .folder(&out)
        .run(
            &mut model,
            &mut AdamW::new(3e-3),
            &train,
            generator,
            |model, tape, x| model.forward(tape.constant(x)),
            |scores, y| cross_entropy(&scores, y),
        )?;

    // Loads the weights of the best epoch, which may not be the last one.
    load(&mut model, out.join("best.safetensors"))?;
    options.write("classes.txt", names.join("\n"))?;
    let (mut scores, mut classes) = (Vec::new(), Vec::new());
    for batch in batches.epoch(0) {
        let (x, y) = batch?;
        scores.push(infer(|x| model.forward(x), &x));
        classes.push(y);
    }
    let (scores, classes) = (cat(&scores, 0), cat(&classes, 0));
    let mut confusion = ConfusionMatrix::new(names.len());
    confusion.update(&scores, &classes)?;
    let mistakes = worst_mistakes(&scores, &classes, 16)?;
    let theirs: Vec<usize> = mistakes.iter().map(|mistake| mistake.sample).collect();
    let page = Page::new("A network for your own images")
        .settings(&[("parameters", model.num_parameters().to_string()), ("seed", options.seed().to_string())])
        .history(&history)?
        .confusion(&confusion, &names)
        .mistakes(&test.batch(&theirs)?.0, &mistakes, &names)?;
    options.write("report.html", page.to_html())?;
    println!("held out: {:.2}% right", 100.0 * confusion.accuracy());
    Ok(())
}

/// Prints the classes of an image with their probabilities.
fn predict(options: &Options, image: &Path) -> Result {
    let names = fs::read_to_string(options.file("classes.txt")?).map_err(|_| "train a network first, with --data")?;
    let names: Vec<&str> = names.lines().collect();
    let mut model = Cnn::new(names.len(), &mut Generator::new(0));
    load(&mut model, options.file("best.safetensors")?)?;
    let image = ImageReader::new().resize([SIZE, SIZE]).read(image)?.unsqueeze(0);
    let shares = infer(|x| model.forward(x), &image).softmax(1);
    for class in shares.argsort(1, true).iter().take(5) {
        println!("{:5.1}%  {}", 100.0 * shares.to_vec()[class as usize], names[class as usize]);
    }
    Ok(())
}

/// Writes the digits of the repository as PNG files, in a folder for each class.
fn digits_as_images(folder: &Path) -> Result<PathBuf> {
    let digits = Samples::<Tensor>::read_csv(DIGITS, 10)?;
    for (number, class) in digits.targets().iter().enumerate() {
        let folder = folder.join(class.to_string());
        fs::create_dir_all(&folder)?;
        let mut encoder = png::Encoder::new(File::create(folder.join(format!("{number:04}.png")))?, 8, 8);
        encoder.set_color(png::ColorType::Grayscale);
        let pixels = digits.inputs().select(0, number as isize);
        let pixels: Vec<u8> = pixels.iter().map(|ink| 255 - (ink * 15.9) as u8).collect();
        encoder.write_header()?.write_image_data(&pixels)?;
    }
    Ok(folder.to_owned())
}
