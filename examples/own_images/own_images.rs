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
//!
//! The images are split in three. The network learns from the first part. The second part, for validation, chooses the best epoch
//! and ends the training. The third part is used once, at the end, so that its result is a fair estimate for new images.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wengert::nn::metrics::{Accuracy, ConfusionMatrix, worst_mistakes};
use wengert::nn::plots::Page;
use wengert::nn::schedule::CosineAnnealingLR;
use wengert::nn::{AdaptiveMaxPool2d, EarlyStopping, Fit, History, ImageFolder, ImageReader, augment};
use wengert::prelude::*;

use course::{DIGITS, Options, Result, run};

/// The library of the course. This example uses only its command-line options and the path of the digits.
#[allow(dead_code, unused_imports)]
#[path = "src/lib.rs"]
mod course;

/// Height and width of all images after resizing.
const SIZE: usize = 32;
/// The number of batches of a training run, and its patience: the number of batches without a better validation score after which the run
/// ends. Both are converted to epochs, with limits: a run has 40 to 400 epochs, and its patience is at least 10 epochs. An epoch of few images
/// has few batches. Then batch normalisation needs many epochs before its running statistics fit the network.
const BATCHES: [u64; 2] = [4000, 1000];

fn main() -> ExitCode {
    let options = Options::new("own_images", "A network for your own images");
    let options = options.text("data", "", "Folder with a folder of images for each class [default: the digits]");
    let epochs = "Largest number of epochs; 0 for 4,000 batches, but at least 40 and at most 400 epochs";
    let options = options.count_in("epochs", 0, [0, 100_000], epochs);
    let patience = "Epochs without a better validation before the end; 0 for 1,000 batches, but at least 10 epochs";
    let options = options.count_in("patience", 0, [0, 100_000], patience);
    let options = options.flag("flip", "Mirror half of the images, left to right, in each epoch");
    let options = options.flag("resume", "Continue after the last complete epoch in the folder");
    run(options.text("use", "", "Image to use the trained network on"), |options| {
        match options.get::<String>("use").as_str() {
            "" => train(options),
            image => predict(options, Path::new(image)),
        }
    })
}

/// Returns a network from images `[n, 3, SIZE, SIZE]` to scores `[n, classes]`.
fn network(classes: usize, generator: &mut Generator) -> Sequential {
    let mut layers = Sequential::new();
    for [from, to] in [[3, 16], [16, 32], [32, 64]] {
        if from > 3 {
            layers = layers.add(MaxPool2d::new(2)); // It halves the height and the width.
        }
        layers = layers
            .add(Conv2d::builder(from, to, 3).padding(1).bias(false).build(generator))
            .add(BatchNorm2d::new(to))
            .add(ReLU);
    }
    layers // [n, 64, 8, 8]
        // The maximum of each channel over the image: the place of an object does not matter. A mean would also include its surroundings.
        .add(AdaptiveMaxPool2d::new(1)) // [n, 64, 1, 1]
        .add(Flatten::default())
        .add(Dropout::new(0.2))
        .add(Linear::new(64, classes, generator))
}

fn train(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let folder = match options.get::<String>("data") {
        none if none.is_empty() => digits_as_images(&options.file("digits")?)?,
        folder => PathBuf::from(folder),
    };
    let images = ImageFolder::open(folder)?.resize([SIZE, SIZE]);
    let names = images.classes();
    let (rest, test) = images.stratified_split(0.2, generator)?;
    let (train, validation) = rest.stratified_split(0.2, generator)?;
    println!("classes: {}", names.join(", "));
    println!("images: {} to learn from, {} for validation, {} for the test", train.len(), validation.len(), test.len());

    // Each file is read once. For a folder whose resized images do not fit into memory, give `train` itself to the loader.
    let (train, validation) = (train.to_samples()?, validation.to_samples()?);
    // Another thread shifts the images of the next batches while the network learns.
    let flip = if options.get("flip") { 0.5 } else { 0.0 };
    let batches = DataLoader::new(train, 32)
        .shuffle()
        .seed(options.seed())
        .map(move |(x, y), generator| {
            let x = augment::random_shift(&x, 3, generator)?;
            Ok((augment::random_horizontal_flip(&x, flip, generator)?, y))
        })
        .prefetch(2);
    let validation = DataLoader::new(validation, 128);
    let [most, patience] = BATCHES.map(|number| number.div_ceil(batches.len() as u64));
    let (epochs, patience) = (most.clamp(40, 400), patience.max(10));
    let epochs = if options.get::<u64>("epochs") == 0 { epochs } else { options.get("epochs") };
    let patience = if options.get::<u64>("patience") == 0 { patience } else { options.get("patience") };
    let out = options.folder()?;
    write_names(options, &names)?;
    let mut model = network(names.len(), generator);
    let fit = Fit::new(epochs)
        .validation(&validation)
        .metric("accuracy", Accuracy::new())
        .early_stopping("accuracy", EarlyStopping::new(patience).maximize())
        .schedule_steps(CosineAnnealingLR::new(3e-3, epochs * batches.len() as u64))
        .folder(&out);
    let history = if options.get("resume") { fit.resume() } else { fit }.run(
        &mut model,
        &mut AdamW::new(3e-3),
        &batches,
        generator,
        |model, tape, x| model.forward(tape.constant(x)),
        |scores, y| cross_entropy(&scores, y),
    )?;
    let best = best_epoch(&history);
    let last = history.epochs().len();
    if (last as u64) < epochs {
        println!("stopped early at epoch {last}: no better validation for {patience} epochs");
    }
    println!("the network of epoch {best} is the best one, and counts");
    load(&mut model, out.join("best.safetensors"))?;

    report(options, &model, &history, &test)
}

/// Writes the names of the classes into the network's folder before the training, so that a network whose training was interrupted can be
/// used. A resumed training run must have the same classes as before.
fn write_names(options: &Options, names: &[&str]) -> Result {
    let path = options.file("classes.txt")?;
    match fs::read_to_string(&path) {
        Ok(before) if options.get("resume") && before != names.join("\n") => Err(format!(
            "{} has the classes {}: give `--out` another folder, or train anew without `--resume`",
            path.display(),
            before.replace('\n', ", ")
        )
        .into()),
        _ => options.write("classes.txt", names.join("\n")),
    }
}

/// Tests the model, and writes a page with the curves, the confusion matrix and the worst mistakes.
fn report(options: &Options, model: &Sequential, history: &History, test: &ImageFolder) -> Result {
    let names = test.classes();
    let (mut scores, mut classes) = (Vec::new(), Vec::new());
    for batch in DataLoader::new(test.clone(), 128).prefetch(2).epoch(0) {
        let (x, y) = batch?;
        scores.push(model.forward(&x));
        classes.push(y);
    }
    let (scores, classes) = (cat(&scores, 0), cat(&classes, 0));
    let mut confusion = ConfusionMatrix::new(names.len());
    confusion.update(&scores, &classes)?;
    let mistakes = worst_mistakes(&scores, &classes, 16)?;
    let theirs: Vec<usize> = mistakes.iter().map(|mistake| mistake.sample).collect();
    let (best, last) = (best_epoch(history), history.epochs().len());
    let settings = [
        ("parameters", model.num_parameters().to_string()),
        ("seed", options.seed().to_string()),
        ("epochs", format!("{last}; the network of epoch {best} is the best one in validation, and was kept")),
        ("test images", test.len().to_string()),
    ];
    let mut page = Page::new("A network for your own images")
        .settings(&settings)
        .history(history)?
        .picture(&format!("The network of epoch {best} on {} test images", test.len()), "")
        .confusion(&confusion, &names);
    if !mistakes.is_empty() {
        page = page.mistakes(&test.batch(&theirs)?.0, &mistakes, &names)?;
    }
    options.write("report.html", page.to_html())?;
    println!("test images: {:.2}% right", 100.0 * confusion.accuracy());
    Ok(())
}

/// Returns the first epoch, counted from 1, with the highest accuracy in validation, or 0 if there is no epoch.
fn best_epoch(history: &History) -> usize {
    let score = |epoch: &wengert::nn::Epoch| epoch.validation.as_ref().and_then(|scores| scores.get("accuracy"));
    let scores: Vec<f64> = history.epochs().iter().map(|epoch| score(epoch).unwrap_or(0.0)).collect();
    let highest = scores.iter().copied().fold(0.0, f64::max);
    scores.iter().position(|&score| score == highest).map_or(0, |position| position + 1)
}

/// Prints the most likely classes of an image, at most five, with their probabilities.
fn predict(options: &Options, image: &Path) -> Result {
    let names = fs::read_to_string(options.file("classes.txt")?).map_err(|_| "train a network first, with --data")?;
    let names: Vec<&str> = names.lines().collect();
    let mut model = network(names.len(), &mut Generator::new(0));
    load(&mut model, options.file("best.safetensors")?)?;
    let image = ImageReader::new().resize([SIZE, SIZE]).read(image)?.unsqueeze(0);
    let shares = model.forward(&image).softmax(1);
    for class in shares.argsort(1, true).iter().take(5) {
        println!("{:5.1}%  {}", 100.0 * shares.to_vec()[class as usize], names[class as usize]);
    }
    Ok(())
}

/// Writes the digits of the repository as PNG files, in a folder for each class, and returns the path of `folder`.
fn digits_as_images(folder: &Path) -> Result<PathBuf> {
    let digits = Samples::<Tensor>::read_csv(DIGITS, 10)?;
    for (number, class) in digits.targets().iter().enumerate() {
        let folder = folder.join(class.to_string());
        fs::create_dir_all(&folder)?;
        let mut encoder = png::Encoder::new(File::create(folder.join(format!("{number:04}.png")))?, 8, 8);
        encoder.set_color(png::ColorType::Grayscale);
        let pixels = digits.inputs().select(0, number);
        let pixels: Vec<u8> = pixels.iter().map(|ink| 255 - (ink * 15.9) as u8).collect();
        encoder.write_header()?.write_image_data(&pixels)?;
    }
    Ok(folder.to_owned())
}
