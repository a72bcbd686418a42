//! A damaged file is an error of the reader, never a panic. Valid files are cut, changed and extended at random.

use std::path::Path;

use wengert::nn::{Checkpoint, Epoch, History, Scores, Table, read_idx, read_npy, read_table};
use wengert::prelude::*;

/// The name of a format, the contents of a valid file, and a function that reads a file and returns whether it accepted it.
type Format = (&'static str, Vec<u8>, fn(&Path) -> bool);

/// Returns a small linear model.
fn model() -> Linear {
    Linear::new(3, 2, &mut Generator::new(1))
}

/// Returns each format with a valid file. A reader returns whether it accepted the file.
fn formats() -> Vec<Format> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    save(&model(), &path).unwrap();
    let checkpoint = std::fs::read(&path).unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    let npy = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &[1; 24]].concat();
    let idx = [&[0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3][..], &[7; 6]].concat();
    let csv = b"a,b,class\n1,2.5,0\n\"3\",-4e2,1\n".to_vec();
    let mut history = History::default();
    history.push(Epoch { lr: 0.1, train: Scores { loss: 1.5, metrics: Vec::new() }, validation: None });
    history.save(&path).unwrap();
    let log = std::fs::read(&path).unwrap();
    vec![
        ("safetensors", checkpoint.clone(), |path| load(&mut model(), path).is_ok()),
        ("checkpoint", checkpoint, |path| Checkpoint::open(path).is_ok()),
        ("npy", npy, |path| read_npy::<f32>(path).is_ok()),
        ("idx", idx, |path| read_idx::<u8>(path).is_ok()),
        ("csv", csv.clone(), |path| Table::read_csv(path).is_ok_and(|table| table.numbers::<f32>(&["a", "b"]).is_ok())),
        ("numbers", csv[10..].to_vec(), |path| read_table::<f32>(path).is_ok()),
        ("log", log, |path| History::read(path).is_ok()),
    ]
}

#[test]
fn no_reader_panics() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let generator = &mut Generator::new(7);
    for (name, valid, accepts) in formats() {
        std::fs::write(&file, &valid).unwrap();
        assert!(accepts(file.path()), "{name}: the reader refuses a valid file");
        let mut refused = 0;
        for _ in 0..400 {
            let mut damaged = valid.clone();
            match generator.below(3) {
                0 => damaged.truncate(generator.below(valid.len() as u64) as usize),
                1 => {
                    for _ in 0..=generator.below(4) {
                        let at = generator.below(valid.len() as u64) as usize;
                        damaged[at] = generator.below(256) as u8;
                    }
                }
                _ => damaged.extend((0..1 + generator.below(20)).map(|_| generator.below(256) as u8)),
            }
            std::fs::write(&file, &damaged).unwrap();
            refused += usize::from(!accepts(file.path()));
        }
        assert!(refused > 40, "{name}: only {refused} of 400 damaged files are refused");
    }
}
