//! A small file never makes a reader request much memory, whatever the file claims. The test counts the bytes that the
//! program's allocator hands out.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use peak_alloc::PeakAlloc;
use wengert::nn::{Checkpoint, History, ImageReader, Table, read_idx, read_npy, read_npz, read_table, read_text};
use wengert::prelude::*;
use wengert_tests::alone;
use zip::write::SimpleFileOptions;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MEBI: usize = 1 << 20;

/// A size in bytes that is a little above 16 MiB, the decompressed size that readers allow for any file.
const TOO_MUCH: usize = 17 * MEBI;

/// Returns the largest memory in bytes that `read` needed at a time, and the result of `read`: true if `read` accepted
/// the file.
fn measured(contents: &[u8], read: impl Fn(&Path) -> bool) -> (usize, bool) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, contents).unwrap();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let accepted = read(file.path());
    (ALLOCATOR.peak_usage().saturating_sub(before), accepted)
}

/// Checks that a hostile file is an error and needs at most `most` bytes.
fn refused(name: &str, contents: &[u8], most: usize, read: impl Fn(&Path) -> bool) {
    let (peak, accepted) = measured(contents, read);
    assert!(!accepted, "{name} is accepted");
    assert!(peak <= most, "{name} of {} bytes needs {} MiB, more than {}", contents.len(), peak / MEBI, most / MEBI);
}

fn gzipped(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn archives_that_expand_too_much() {
    let _alone = alone();
    // A table of many short rows needs the most memory for its text.
    let table = gzipped(&b"1\n".repeat(TOO_MUCH / 2));
    refused("table", &table, 400 * MEBI, |path| Table::read_csv(path).is_ok());
    refused("text", &gzipped(&b"a".repeat(TOO_MUCH)), 64 * MEBI, |path| read_text(path).is_ok());
    refused("log", &gzipped(&b"{\"train\":{}}\n".repeat(TOO_MUCH / 13)), MEBI, |path| History::read(path).is_ok());
    let idx = [&[0, 0, 8, 1, 2, 0, 0, 0][..], &vec![0; TOO_MUCH]].concat();
    refused("IDX", &gzipped(&idx), 400 * MEBI, |path| read_idx::<f64>(path).is_ok());
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    archive.start_file("x.npy", SimpleFileOptions::default()).unwrap();
    archive.write_all(&npy("(1073741824,)", &vec![0; TOO_MUCH])).unwrap();
    let archive = archive.finish().unwrap().into_inner();
    refused("npz", &archive, 400 * MEBI, |path| read_npz::<f64>(path, "x").is_ok());
}

/// Returns a file of NumPy with bytes as elements.
fn npy(shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
}

#[test]
fn headers_that_claim_too_much() {
    let _alone = alone();
    refused("npy", &npy("(1099511627776,)", &[0; 9]), MEBI, |path| read_npy::<f64>(path).is_ok());
    let idx = [&[0, 0, 14, 2][..], &[0xff; 8], &[0; 64]].concat();
    refused("IDX", &idx, MEBI, |path| read_idx::<f64>(path).is_ok());
    // An image of one bit for each pixel: 16,384 x 16,384 pixels in 32 KB.
    let size = 1 << 14;
    let mut image = Vec::new();
    let mut encoder = png::Encoder::new(&mut image, size, size);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&vec![0; (size * size / 8) as usize]).unwrap();
    drop(writer);
    assert!(image.len() < MEBI / 4);
    refused("PNG", &image, 2 * MEBI, |path| ImageReader::new().read(path).is_ok());
}

#[test]
fn sparse_checkpoints() {
    let _alone = alone();
    let (folder, bytes) = (tempfile::tempdir().unwrap(), 1u64 << 40);
    for name in
        ["@integer.epoch", "@generator", "@number.best", "@settings.sgd.lr", "@optimizer.sgd.weight.step", "weight"]
    {
        let path = folder.path().join("sparse");
        let header = format!(r#"{{"{name}":{{"dtype":"U64","shape":[137438953472],"data_offsets":[0,{bytes}]}}}}"#);
        std::fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        if file.set_len(8 + header.len() as u64 + bytes).is_err() {
            return; // the file system has no sparse files
        }
        let (peak, accepted) = measured(&[], |_| {
            let (saved, mut model) = (Checkpoint::open(&path).unwrap(), Linear::new(3, 2, &mut Generator::new(0)));
            let optimizer = saved.load_optimizer("sgd", &mut Sgd::<f32>::new(0.1).momentum(0.9), &model).is_ok();
            let numbers = saved.integer("epoch").is_ok() || saved.number("best").is_ok() || saved.generator().is_ok();
            numbers || optimizer || saved.load_model(&mut model).is_ok()
        });
        assert!(!accepted && peak < MEBI, "{name} needs {peak} bytes");
    }
}

#[test]
fn files_below_the_limit_are_read() {
    let _alone = alone();
    let rows = MEBI;
    let (peak, accepted) = measured(&gzipped(&b"1\n".repeat(rows)), |path| {
        read_table::<f32>(path).is_ok_and(|table| table.shape().sizes() == [rows, 1])
    });
    assert!(accepted && peak < 40 * MEBI, "{} MiB", peak / MEBI);
}
