//! A reader of a damaged file never panics. It returns an error, or data if it cannot notice the damage. Valid files are cut,
//! changed and extended at random, and their numbers are replaced by extreme ones.

use std::io::{Cursor, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use image::{ImageFormat, RgbImage};
use wengert::nn::{
    Checkpoint, Epoch, History, ImageReader, Scores, Table, read_idx, read_npy, read_npz, read_table, read_text,
};
use wengert::prelude::*;
use zip::write::SimpleFileOptions;

/// The name of a format, the contents of a valid file, and a function that reads a file and returns true if the file was accepted.
type Format = (&'static str, Vec<u8>, fn(&Path) -> bool);

/// Returns a small linear model.
fn model() -> Linear {
    Linear::new(3, 2, &mut Generator::new(1))
}

/// Reads every part of the checkpoint that [`checkpoint`] writes.
fn read_checkpoint(path: &Path) -> wengert::nn::Result<()> {
    let (saved, mut model) = (Checkpoint::open(path)?, model());
    // Each part is read, also after an error of another part.
    let parts = [
        saved.load_model(&mut model).map(drop),
        saved.load_optimizer("adam", &mut Adam::new(0.1), &model),
        saved.generator().map(drop),
        saved.integer("epoch").map(drop),
        saved.number("best").map(drop),
    ];
    let converting = saved.convert().partial();
    let _ = converting.load_model(&mut Linear::<f64>::new(3, 2, &mut Generator::new(1)));
    parts.into_iter().collect()
}

/// Writes a checkpoint with every kind of entry to `path`, and returns its bytes.
fn checkpoint(path: &Path) -> Vec<u8> {
    let (mut model, mut adam) = (model(), Adam::new(0.1));
    let x = Tensor::ones([4, 3]);
    let (_, gradients) = Tape::training(&mut Generator::new(0))
        .value_and_gradients(|tape| model.forward(tape.constant(&x)).square().mean(..));
    adam.step(&mut model, &gradients);
    let parts = Checkpoint::new().model(&model).optimizer("adam", &adam, &model).generator(&Generator::new(3));
    parts.integer("epoch", 7).number("best", 0.5).save(path).unwrap();
    std::fs::read(path).unwrap()
}

/// Returns the bytes of a small image in the given format.
fn image(format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    let image = RgbImage::from_fn(9, 7, |x, y| image::Rgb([20 * x as u8, 30 * y as u8, 99]));
    image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// Returns gzipped bytes.
fn gzipped(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Returns an archive with one array.
fn zipped(npy: &[u8]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("x.npy", SimpleFileOptions::default()).unwrap();
    writer.write_all(npy).unwrap();
    writer.finish().unwrap().into_inner()
}

/// Returns each format with a valid file and a function that reads it.
fn formats() -> Vec<Format> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    let npy = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &[1; 24]].concat();
    let idx = [&[0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3][..], &[7; 6]].concat();
    let csv = b"a,b,class\n1,2.5,0\n\"3\",-4e2,1\n".to_vec();
    let mut history = History::default();
    let scores = Scores { loss: 1.5, metrics: vec![("accuracy".to_owned(), 0.5)] };
    history.push(Epoch { lr: 0.1, train: scores.clone(), validation: Some(scores) });
    history.save(&path).unwrap();
    let log = std::fs::read(&path).unwrap();
    save(&model(), &path).unwrap();
    vec![
        ("safetensors", std::fs::read(&path).unwrap(), |path| load(&mut model(), path).is_ok()),
        ("checkpoint", checkpoint(&path), |path| read_checkpoint(path).is_ok()),
        ("npy", npy.clone(), |path| read_npy::<f32>(path).is_ok()),
        ("npz", zipped(&npy), |path| read_npz::<f64>(path, "x").is_ok()),
        ("idx", idx.clone(), |path| read_idx::<u8>(path).is_ok()),
        ("gzipped idx", gzipped(&idx), |path| read_idx::<f64>(path).is_ok()),
        ("csv", csv.clone(), |path| {
            Table::read_csv(path)
                .is_ok_and(|table| table.numbers::<f32>(&["a", "b"]).is_ok() && table.classes("class").is_ok())
        }),
        ("numbers", csv[10..].to_vec(), |path| read_table::<f32>(path).is_ok()),
        ("gzipped numbers", gzipped(&csv[10..]), |path| read_table::<f64>(path).is_ok()),
        ("samples", csv[10..].to_vec(), |path| Samples::<Tensor>::read_csv(path, 2).is_ok()),
        ("text", gzipped("größe".as_bytes()), |path| read_text(path).is_ok()),
        ("log", log, |path| History::read(path).is_ok()),
        ("png", image(ImageFormat::Png), |path| ImageReader::new().read(path).is_ok()),
        ("jpeg", image(ImageFormat::Jpeg), |path| ImageReader::new().grayscale().resize([4, 4]).read(path).is_ok()),
    ]
}

/// Returns `valid` with one kind of damage.
fn damaged(valid: &[u8], generator: &mut Generator) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    let place = |generator: &mut Generator| generator.below(valid.len() as u64) as usize;
    match generator.below(7) {
        0 => bytes.truncate(place(generator)),
        1 => {
            for _ in 0..=generator.below(4) {
                bytes[place(generator)] = generator.below(256) as u8;
            }
        }
        2 => bytes.extend((0..1 + generator.below(20)).map(|_| generator.below(256) as u8)),
        3 => {
            // A copy of some neighbouring bytes is inserted at a random place.
            let (from, to) = (place(generator), place(generator));
            let part = bytes[from.min(to)..from.max(to)].to_vec();
            let at = place(generator);
            bytes.splice(at..at, part);
        }
        4 => {
            // Up to eight bytes become an extreme number, as in a binary header.
            let extreme = [0, 1, u64::MAX, u64::MAX / 2, 1 << 31, 1 << 40][generator.below(6) as usize];
            let (at, width) = (place(generator), [1, 2, 4, 8][generator.below(4) as usize]);
            let extreme = if generator.below(2) == 0 { extreme.to_le_bytes() } else { extreme.to_be_bytes() };
            bytes.iter_mut().skip(at).zip(&extreme[..width]).for_each(|(byte, &other)| *byte = other);
        }
        5 => {
            // Some neighbouring bytes are removed.
            let (from, to) = (place(generator), place(generator));
            bytes.drain(from.min(to)..from.max(to));
        }
        _ => {
            // Nines are inserted before a digit, as in the shape of a text header.
            let digits: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
            if !digits.is_empty() {
                let at = digits[generator.below(digits.len() as u64) as usize];
                let more = b"9".repeat(1 + generator.below(30) as usize);
                bytes.splice(at..at, more);
            }
        }
    }
    bytes
}

#[test]
fn no_reader_panics() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let generator = &mut Generator::new(7);
    for (name, valid, accepts) in formats() {
        std::fs::write(&file, &valid).unwrap();
        assert!(accepts(file.path()), "{name}: the reader refuses a valid file");
        let mut refused = 0;
        for _ in 0..600 {
            std::fs::write(&file, damaged(&valid, generator)).unwrap();
            refused += usize::from(!accepts(file.path()));
        }
        assert!(refused > 60, "{name}: only {refused} of 600 damaged files are refused");
    }
}
