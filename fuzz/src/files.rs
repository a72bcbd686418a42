//! The readers of files. Each must return an error or a value.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs, process};

use wengert::nn::{
    Checkpoint, History, ImageReader, Saved, Table, read_idx, read_npy, read_npz, read_table, read_text,
};
use wengert::prelude::*;

/// The largest number of bytes of an input. It keeps a run of a target short.
const LONGEST: usize = 1 << 16;

/// Writes the bytes to the file of this process and passes its path to `read`. Does nothing for more than [`LONGEST`] bytes.
fn with_file(data: &[u8], read: impl FnOnce(&Path)) {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let path = FILE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { env::temp_dir() };
        folder.join(format!("wengert-fuzz-{}", process::id()))
    });
    if data.len() <= LONGEST {
        fs::write(path, data).expect("the folder of temporary files is writable");
        read(path);
    }
}

/// Reads tables whose values commas or semicolons separate.
pub fn tables(data: &[u8]) {
    with_file(data, |path| {
        if let Ok(table) = read_table::<f64>(path) {
            assert!(table.iter().all(f64::is_finite));
            // If no two names are equal, the same rows are also a table with names.
            if let Ok(named) = Table::read_csv(path) {
                assert_eq!([named.len() + 1, named.names().len()], table.shape().sizes());
            }
        }
        let _ = read_table::<f32>(path);
        let _ = Samples::<Tensor>::read_csv(path, 10);
        let _ = read_text(path);
        for delimiter in [b',', b';'] {
            let Ok(table) = Table::read_separated(path, delimiter) else { continue };
            let names: Vec<&str> = table.names().iter().map(String::as_str).collect();
            for &name in &names {
                let _ = (table.numbers::<f32>(&[name]), table.numbers_or::<f64>(&[name], 0.5), table.texts(name));
                let _ = (table.classes(name), table.column::<f64>(name));
            }
            let _ = table.clone().drop_missing(&names);
        }
    });
}

/// Reads IDX files and files of NumPy.
pub fn arrays(data: &[u8]) {
    with_file(data, |path| {
        let _ = (read_idx::<u8>(path), read_idx::<f64>(path), read_idx::<i64>(path));
        let _ = (read_npy::<f32>(path), read_npy::<bool>(path), read_npy::<i64>(path));
    });
}

/// Reads archives of NumPy's arrays.
pub fn npz(data: &[u8]) {
    with_file(data, |path| {
        let _ = (read_npz::<f32>(path, "x"), read_npz::<i64>(path, "arr_0"), read_npz::<f64>(path, "missing"));
    });
}

/// Reads a checkpoint of a linear model. If the first byte is even, the other bytes are the file. If it is odd, the file is made of the
/// right length of the header, the header, and zeros. The second byte is the number of zeros, and the other bytes are the header. So the
/// target reaches the code after the header more often.
pub fn checkpoints(data: &[u8]) {
    let [kind, tensors, rest @ ..] = data else { return };
    let bytes = if kind % 2 == 1 {
        [&(rest.len() as u64).to_le_bytes()[..], rest, &vec![0; usize::from(*tensors)]].concat()
    } else {
        data[1..].to_vec()
    };
    with_file(&bytes, |path| {
        if let Ok(saved) = Checkpoint::open(path) {
            read_entries(&saved);
        }
        if let Ok(saved) = Checkpoint::open(path) {
            read_entries(&saved.convert().partial().rename(|name| name.replace("module.", "")));
        }
    });
}

/// Reads every kind of entry.
fn read_entries(saved: &Saved) {
    let mut model = Linear::<f32>::new(3, 2, &mut Generator::new(0));
    let _ = saved.load_model(&mut model);
    let _ = saved.load_model(&mut BatchNorm1d::<f64>::new(2));
    let _ = saved.load_optimizer("o", &mut Sgd::new(0.1).momentum(0.9), &model);
    let _ = saved.load_optimizer("o", &mut Adam::new(0.1).amsgrad(), &model);
    let _ = (saved.generator(), saved.integer("epoch"), saved.number("best"));
}

/// Reads logs of a training run.
pub fn logs(data: &[u8]) {
    with_file(data, |path| {
        if let Ok(history) = History::read(path) {
            let text: String = history.epochs().iter().map(ToString::to_string).collect();
            assert!(history.epochs().is_empty() || !text.is_empty());
        }
    });
}

/// Reads images.
pub fn images(data: &[u8]) {
    with_file(data, |path| {
        let reader = ImageReader::new().max_pixels(1 << 20);
        if let Ok(image) = reader.read(path) {
            assert!(image.shape()[0] == 3 && image.iter().all(|value| (0.0..=1.0).contains(&value)));
        }
        let _ = reader.grayscale().resize([3, 2]).read(path);
    });
}
