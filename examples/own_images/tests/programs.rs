//! Tests that the program learns three classes of images, and ends its training early if the validation score no longer improves. Also tests
//! that it can resume an interrupted training run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Height and width of the images, in pixels.
const SIZE: usize = 32;
/// The number of images in each class.
const IMAGES: usize = 6;

/// Returns true if the pixel at x and y is lit, in the image with this shift.
type IsLit = fn(x: usize, y: usize, shift: usize) -> bool;

/// A temporary folder, which is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wengert-own_images-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes `shapes` with a folder of PNG files for each class: red columns, green rows and blue squares, at several places on black.
fn write_shapes(shapes: &Path) {
    let classes: [(&str, IsLit); 3] = [
        ("columns", |x, _, shift| (x + shift) % 8 < 4),
        ("rows", |_, y, shift| (y + shift) % 8 < 4),
        ("squares", |x, y, shift| (shift..shift + 16).contains(&x) && (shift..shift + 16).contains(&y)),
    ];
    for (color, (class, is_lit)) in classes.into_iter().enumerate() {
        let folder = shapes.join(class);
        fs::create_dir_all(&folder).expect("a folder can be made");
        for shift in 0..IMAGES {
            let file = File::create(folder.join(format!("{shift}.png"))).expect("a file can be made");
            let mut encoder = png::Encoder::new(file, SIZE as u32, SIZE as u32);
            encoder.set_color(png::ColorType::Rgb);
            let mut pixels = vec![0; 3 * SIZE * SIZE];
            for (i, pixel) in pixels.chunks_exact_mut(3).enumerate() {
                pixel[color] = if is_lit(i % SIZE, i / SIZE, shift) { 255 } else { 0 };
            }
            let mut writer = encoder.write_header().expect("the header can be written");
            writer.write_image_data(&pixels).expect("the pixels can be written");
        }
    }
}

/// Returns the command that runs the program in `folder`.
fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own_images"));
    command.args(arguments).current_dir(folder);
    command
}

/// Runs the program in `folder`. Returns whether it succeeds, and what it writes to standard output and to standard error.
fn outcome(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let output = program(folder, arguments).output().expect("the program runs");
    let [text, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), text, error)
}

/// Runs the program in `folder` and returns its output.
fn run(folder: &Path, arguments: &[&str]) -> String {
    let (success, text, error) = outcome(folder, arguments);
    assert!(success, "{text}\n{error}");
    text
}

#[test]
fn learns_three_shapes_and_names_them() {
    let folder = Folder::new("learns");
    write_shapes(&folder.0.join("shapes"));
    let text = run(&folder.0, &["--data", "shapes", "--epochs", "12"]);
    assert!(text.contains("classes: columns, rows, squares"), "{text}");
    assert!(text.contains("images: 11 to learn from, 3 for validation, 4 for the test"), "{text}");
    assert!(text.contains("test images: 100.00% right"), "{text}");
    assert!(!text.contains("stopped early"), "{text}");
    let out = folder.0.join("out/own_images");
    let report = fs::read_to_string(out.join("report.html")).expect("the report was written");
    assert!(report.contains("12; the network of epoch") && report.contains("squares"), "{report}");
    for class in ["columns", "rows", "squares"] {
        let text = run(&folder.0, &["--use", &format!("shapes/{class}/2.png")]);
        let likeliest = text.lines().next().unwrap_or_default();
        assert!(likeliest.ends_with(&format!("%  {class}")), "{class}: {text}");
    }
}

#[test]
fn ends_early_without_a_better_validation() {
    let folder = Folder::new("ends");
    write_shapes(&folder.0.join("shapes"));
    let text = run(&folder.0, &["--data", "shapes", "--epochs", "1000", "--patience", "2"]);
    let number = |before: &str, after: &str| -> usize {
        let rest = text.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {text}")).1;
        rest.split_once(after).and_then(|(number, _)| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let last = number("stopped early at epoch ", ": no better validation for 2 epochs");
    let best = number("the network of epoch ", " is the best one");
    assert_eq!(last, best + 2, "{text}");
    assert!(folder.0.join("out/own_images/report.html").exists());
}

#[test]
fn a_network_of_an_interrupted_training_can_be_used() {
    let folder = Folder::new("interrupted");
    write_shapes(&folder.0.join("shapes"));
    let mut training = program(&folder.0, &["--data", "shapes", "--epochs", "100000", "--patience", "100000"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    let best = folder.0.join("out/own_images/best.safetensors");
    while !best.exists() {
        assert!(training.try_wait().expect("the program can be observed").is_none(), "the training ended");
        thread::sleep(Duration::from_millis(20));
    }
    training.kill().and_then(|()| training.wait()).expect("the program can be killed");
    assert_eq!(run(&folder.0, &["--use", "shapes/rows/2.png"]).lines().count(), 3);
    assert!(run(&folder.0, &["--data", "shapes", "--epochs", "1", "--resume"]).contains("test images"));

    // The saved network has other classes, so it cannot be trained further.
    fs::rename(folder.0.join("shapes/rows"), folder.0.join("shapes/lines")).expect("the folder can be renamed");
    let (success, _, error) = outcome(&folder.0, &["--data", "shapes", "--resume"]);
    assert!(
        !success && error.contains("has the classes columns, rows, squares: give `--out` another folder"),
        "{error}"
    );
}
