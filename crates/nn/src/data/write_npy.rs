//! Writes NumPy's files: `.npy`, and `.npz` archives with the feature `npz`. The format is described at
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use std::path::Path;

use wengert_tensor::{DType, Element, Tensor};

use crate::Result;
use crate::bytes::to_bytes;
use crate::file::write_atomically;

/// The alignment of the first number in a file, in bytes, as the format requires.
const ALIGNMENT: usize = 64;

/// A tensor of any element type, or a reference to one, as an array of NumPy.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tensor, so it cannot be written for NumPy",
    note = "`x.value()` is the tensor of a variable, and `p.value` the tensor of a parameter; `Tensor::from` makes a tensor of a list"
)]
pub trait NumpyArray {
    /// Returns the contents of a `.npy` file with this array.
    #[doc(hidden)]
    fn to_npy(&self) -> Vec<u8>;
}

impl<E: Element> NumpyArray for Tensor<E> {
    fn to_npy(&self) -> Vec<u8> {
        let kind = match E::DTYPE {
            DType::F32 => "<f4",
            DType::F64 => "<f8",
            DType::I64 => "<i8",
            DType::U8 => "|u1",
            _ => "|b1",
        };
        let sizes: Vec<String> = self.shape().iter().map(usize::to_string).collect();
        // Python writes a tuple of one element with a comma.
        let shape = if sizes.len() == 1 { format!("({},)", sizes[0]) } else { format!("({})", sizes.join(", ")) };
        let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
        // A file of version 1 starts with 10 bytes: the format's signature, the version, and the length of the header in 2 bytes. A file of
        // version 2 starts with 12 bytes, because it has 4 bytes for the length.
        let start = if header.len() + ALIGNMENT < usize::from(u16::MAX) { 10 } else { 12 };
        let length = (start + header.len() + 1).next_multiple_of(ALIGNMENT) - start;
        header.extend(std::iter::repeat_n(' ', length - 1 - header.len()));
        header.push('\n');
        let mut bytes = b"\x93NUMPY".to_vec();
        if start == 10 {
            bytes.extend([1, 0]);
            bytes.extend((length as u16).to_le_bytes());
        } else {
            bytes.extend([2, 0]);
            bytes.extend((length as u32).to_le_bytes());
        }
        bytes.extend(header.into_bytes());
        bytes.extend(to_bytes(self));
        bytes
    }
}

impl<A: NumpyArray> NumpyArray for &A {
    fn to_npy(&self) -> Vec<u8> {
        (**self).to_npy()
    }
}

/// Writes a tensor to the file `path`, completely or not at all (see [`write_atomically`]). [`read_npy`](crate::read_npy) and NumPy read
/// it. NumPy: `numpy.save`, which adds the ending `.npy` if the path has none; this function does not.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{read_npy, write_npy};
/// use wengert::prelude::*;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("x.npy");
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// write_npy(&path, &x)?;
/// assert_eq!(read_npy::<f32>(&path)?, x);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The file cannot be written: [`Error::Write`](crate::Error::Write). An existing file keeps its contents.
pub fn write_npy(path: impl AsRef<Path>, tensor: &impl NumpyArray) -> Result<()> {
    write_atomically(path, &tensor.to_npy())
}

/// Writes tensors with their names to an archive, completely or not at all. The element types may differ. The numbers are not compressed.
/// [`read_npz`](crate::read_npz) and NumPy read it. NumPy: `numpy.savez`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{read_npz, write_npz};
/// use wengert::prelude::*;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("data.npz");
/// let (x, classes) = (Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]), Tensor::from([0, 1]));
/// write_npz(&path, &[("x", &x), ("classes", &classes)])?;
/// assert_eq!(read_npz::<i64>(&path, "classes")?, classes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// - Two arrays have the same name: [`Error::DuplicateName`](crate::Error::DuplicateName).
/// - The file cannot be written: [`Error::Write`](crate::Error::Write). An existing file keeps its contents.
#[cfg(feature = "npz")]
pub fn write_npz(path: impl AsRef<Path>, arrays: &[(&str, &dyn NumpyArray)]) -> Result<()> {
    use std::io::{Cursor, Error as IoError, Write as _};

    use zip::CompressionMethod;
    use zip::write::SimpleFileOptions;

    use crate::Error;

    for (position, (name, _)) in arrays.iter().enumerate() {
        if arrays[..position].iter().any(|(other, _)| other == name) {
            return Err(Error::DuplicateName { kind: "arrays", name: (*name).to_owned() });
        }
    }
    let path = path.as_ref();
    let write = || -> std::result::Result<Vec<u8>, zip::result::ZipError> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, array) in arrays {
            let contents = array.to_npy();
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            // An array of 4 GiB or more needs the ZIP format's extension for files above 4 GiB.
            let options = options.large_file(contents.len() >= u32::MAX as usize);
            archive.start_file(format!("{name}.npy"), options)?;
            archive.write_all(&contents)?;
        }
        Ok(archive.finish()?.into_inner())
    };
    let refused = |error| Error::Write { path: path.to_owned(), source: IoError::other(error) };
    write_atomically(path, &write().map_err(refused)?)
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::Views as _;

    use super::*;
    use crate::read_npy;

    /// The expected bytes were written by `numpy.save` (NumPy 2) for `numpy.array([[1, 2, 3]], numpy.uint8)`.
    #[test]
    fn the_bytes_are_numpys() {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3), }";
        let padded = format!("{header:<117}\n");
        let expected = [b"\x93NUMPY\x01\0\x76\0", padded.as_bytes(), &[1, 2, 3]].concat();
        assert_eq!(Tensor::from([[1u8, 2, 3]]).to_npy(), expected);
    }

    #[test]
    fn arrays_of_every_type_and_shape_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        fn check<E: Element>(path: &Path, tensor: &Tensor<E>) {
            write_npy(path, tensor).unwrap();
            let bytes = std::fs::read(path).unwrap();
            assert_eq!((bytes.len() - to_bytes(tensor).len()) % ALIGNMENT, 0);
            assert_eq!(&read_npy::<E>(path).unwrap(), tensor);
        }
        check(&path, &Tensor::from([1.5f32, -0.0, f32::INFINITY]));
        check(&path, &Tensor::from([[0.1f64], [f64::MIN_POSITIVE]]));
        check(&path, &Tensor::from([i64::MIN, i64::MAX]));
        check(&path, &Tensor::from([true, false]));
        check(&path, &Tensor::scalar(2.0f64));
        check(&path, &Tensor::<f32>::zeros([0, 3]));
        check(&path, &Tensor::<i64>::arange(6).reshape([2, 3]).t());
        for rank in [20, 40] {
            check(&path, &Tensor::<f32>::ones(vec![1usize; rank]));
        }
        assert!(write_npy(folder.path().join("missing/x.npy"), &Tensor::scalar(1.0)).is_err());
    }

    /// A header of more than 65,535 bytes needs version 2 of the format. `read_npy` refuses headers of more than
    /// 65,536 bytes, so this test does not read the file.
    #[test]
    fn a_long_header_has_version_2() {
        let bytes = Tensor::<u8>::ones(vec![1usize; 30_000]).to_npy();
        assert_eq!(bytes[..8], *b"\x93NUMPY\x02\0");
        let length = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        assert_eq!((12 + length + 1, bytes[11 + length]), (bytes.len(), b'\n'));
    }

    #[cfg(feature = "npz")]
    #[test]
    fn archives_have_arrays_of_several_types_and_no_name_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let (x, y) = (Tensor::from([1.5f32, 2.5]), Tensor::from([[7i64]]));
        write_npz(&path, &[("x", &x), ("labels/y", &y)]).unwrap();
        assert_eq!(crate::read_npz::<f32>(&path, "x").unwrap(), x);
        assert_eq!(crate::read_npz::<i64>(&path, "labels/y").unwrap(), y);
        let before = std::fs::read(&path).unwrap();
        let error = write_npz(&path, &[("x", &x), ("x", &y)]).unwrap_err();
        assert_eq!(error.to_string(), "two arrays have the name 'x'");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        write_npz(&path, &[]).unwrap();
    }
}
