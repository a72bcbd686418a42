//! Parameters and buffers in files: the safetensors format, which PyTorch reads.
//!
//! In Python, `safetensors.torch.load_file(path)` gives a `state_dict` that `load_state_dict` takes: the names are the
//! parameters' and the layouts PyTorch's. The other way round, a `state_dict` saved by `safetensors.torch.save_file`
//! loads here. The format: <https://github.com/huggingface/safetensors#format>. The same values give the same bytes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use safetensors::tensor::{Metadata, TensorInfo, TensorView};
use safetensors::{Dtype, serialize};
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use wengert_tensor::{DType, Float, Shape};

use crate::bytes::{from_bytes, to_bytes};
use crate::file::{open_regular, write_atomically};
use crate::module::{Leaf, LeafMut, Module};
use crate::{Error, KeyMismatch, Result};

/// The header's name for what is no tensor: pairs of texts.
const METADATA: &str = "__metadata__";

/// The longest header, in bytes, that the format allows.
const LONGEST_HEADER: u64 = 100_000_000;

/// Bytes of the number at the file's beginning, the header's length.
const LENGTH: u64 = 8;

/// Writes the parameters of `model` to the file `path`, whole or not at all
/// ([`write_atomically`](crate::write_atomically)). safetensors: `save_file(model.state_dict(), path)`.
///
/// ```
/// use wengert_nn::{Generator, Linear, load, save};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.safetensors");
/// let trained = Linear::<f32>::new(4, 2, &mut Generator::new(0));
/// save(&trained, &path)?;
///
/// let mut model = Linear::<f32>::new(4, 2, &mut Generator::new(1));
/// load(&mut model, &path)?;
/// assert_eq!(model.weight.value, trained.weight.value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Where two parameters have one name ([`Error::DuplicateName`]), one is named `__metadata__`, as the format's own entry
/// ([`Error::ReservedName`]), or the file cannot be written ([`Error::Write`]). What was in the file before is still
/// there.
pub fn save<T: Float>(model: &(impl Module<T> + ?Sized), path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let leaves = model.leaves();
    check_names(leaves.iter().map(|(name, _)| &name[..]))?;
    let bytes: Vec<(Dtype, &Shape, Vec<u8>)> = leaves.iter().map(|(_, leaf)| contents(leaf)).collect();
    let views = leaves
        .iter()
        .zip(&bytes)
        .map(|((name, _), (dtype, shape, bytes))| Ok((&name[..], TensorView::new(*dtype, shape.to_vec(), bytes)?)));
    let refused = |error: safetensors::SafeTensorError| Error::Write {
        path: path.to_owned(),
        source: io::Error::other(error.to_string()),
    };
    let views: Vec<(&str, TensorView)> = views.collect::<std::result::Result<_, _>>().map_err(refused)?;
    // What PyTorch's own files say, and loaders that know several frameworks ask for.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    write_atomically(path, &serialize(views, Some(metadata)).map_err(refused)?)
}

/// Reads the parameters of `model` from the file `path`. Names, shapes and element types must be those of the model.
/// PyTorch: `model.load_state_dict(load_file(path), strict=True)`.
///
/// The header is read and checked first, then the tensors, one at a time and only if all fit the model.
///
/// # Errors
///
/// - The file is missing, unreadable or no regular file (a folder, a device or a pipe): [`Error::Read`].
/// - It is no checkpoint, is damaged, has a header of more than 100 MB, or has two tensors of one name: [`Error::Checkpoint`].
/// - It does not fit the model: [`Error::Keys`], with all names that are missing, unexpected or mismatched.
/// - Two parameters of the model have one name: [`Error::DuplicateName`].
///
/// The model is then as it was.
pub fn load<T: Float>(model: &mut (impl Module<T> + ?Sized), path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let leaves = model.leaves_mut();
    check_names(leaves.iter().map(|(name, _)| &name[..]))?;
    let unreadable = |source: io::Error| Error::Read { path: path.to_owned(), source };
    let (mut file, size) = open_regular(path)?;
    let (start, header) = read_header(&mut file, size)
        .map_err(unreadable)?
        .map_err(|reason| Error::Checkpoint { path: path.to_owned(), reason })?;

    let (mut missing, mut mismatched, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = header.tensors();
    for (name, leaf) in &leaves {
        let (expected, shape) = described(leaf);
        match found.remove(name) {
            None => missing.push(name.clone()),
            Some(info) if info.dtype != expected || info.shape != shape.sizes() => {
                let found = (Shape::from(&info.shape[..]), info.dtype.to_string());
                mismatched.push(KeyMismatch {
                    name: name.clone(),
                    found,
                    expected: (shape.clone(), expected.to_string()),
                });
            }
            Some(info) => offsets.push(info.data_offsets),
        }
    }
    let mut unexpected: Vec<String> = found.into_keys().collect();
    unexpected.sort_unstable();
    if !(missing.is_empty() && unexpected.is_empty() && mismatched.is_empty()) {
        return Err(Error::Keys { path: path.to_owned(), missing, unexpected, mismatched });
    }

    let mut contents = Vec::with_capacity(leaves.len());
    for (from, to) in offsets {
        let mut bytes = vec![0; to - from];
        file.seek(SeekFrom::Start(start + from as u64)).map_err(unreadable)?;
        file.read_exact(&mut bytes).map_err(unreadable)?;
        contents.push(bytes);
    }
    for ((_, leaf), bytes) in leaves.into_iter().zip(contents) {
        match leaf {
            LeafMut::Parameter(parameter) => parameter.value = from_bytes(&bytes, parameter.value.shape())?,
            LeafMut::Buffer(buffer) => buffer.set_from_bytes(&bytes)?,
        }
    }
    Ok(())
}

/// The header of a checkpoint of `size` bytes, and where the tensors begin; or what is wrong with it. Nothing beyond the
/// header is read. The tensors of a header that is right cover the rest of the file, without overlap.
fn read_header(file: &mut File, size: u64) -> io::Result<std::result::Result<(u64, Metadata), String>> {
    if size < LENGTH {
        return Ok(Err(format!("it has {size} bytes, too few for the length of a header")));
    }
    let mut length = [0; LENGTH as usize];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Ok(Err(format!("a header of {length} bytes, where the format allows {LONGEST_HEADER}")));
    }
    let start = LENGTH + length;
    if start > size {
        return Ok(Err(format!("a header of {length} bytes in a file of {size}")));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let parse = || {
        let mut json = serde_json::Deserializer::from_slice(&header);
        let mut tensors = json.deserialize_map(Entries).map_err(|error| error.to_string())?;
        json.end().map_err(|error| error.to_string())?;
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        let header = Metadata::new(None, tensors).map_err(|error| error.to_string())?;
        let (expected, found) = (header.data_len() as u64, size - start);
        if expected != found {
            return Err(format!("the tensors of its header have {expected} bytes, after it come {found}"));
        }
        Ok((start, header))
    };
    Ok(parse())
}

/// The tensors of a header, in its order. Of two entries of one name a map would keep one and say nothing.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, TensorInfo)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensors by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let (mut tensors, mut seen) = (Vec::new(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                map.next_value::<IgnoredAny>()?;
            } else {
                tensors.push((name.clone(), map.next_value()?));
            }
            if let Some(name) = seen.replace(name) {
                return Err(A::Error::custom(format!("two tensors are named '{name}'")));
            }
        }
        Ok(tensors)
    }
}

fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if name == METADATA {
            return Err(Error::ReservedName { name: name.to_owned() });
        }
        if !seen.insert(name) {
            return Err(Error::DuplicateName { name: name.to_owned() });
        }
    }
    Ok(())
}

/// Element type, shape and bytes of a leaf.
fn contents<'m, T: Float>(leaf: &Leaf<'m, T>) -> (Dtype, &'m Shape, Vec<u8>) {
    match leaf {
        Leaf::Parameter(parameter) => (dtype(T::DTYPE), parameter.value.shape(), to_bytes(&parameter.value)),
        Leaf::Buffer(buffer) => (dtype(buffer.dtype()), buffer.shape(), buffer.to_bytes()),
    }
}

/// Element type and shape of a leaf.
fn described<'a, T: Float>(leaf: &'a LeafMut<'_, T>) -> (Dtype, &'a Shape) {
    match leaf {
        LeafMut::Parameter(parameter) => (dtype(T::DTYPE), parameter.value.shape()),
        LeafMut::Buffer(buffer) => (dtype(buffer.dtype()), buffer.shape()),
    }
}

fn dtype(of: DType) -> Dtype {
    match of {
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        _ => Dtype::BOOL,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use safetensors::SafeTensors;
    use wengert_tensor::Tensor;

    use super::*;
    use crate::{Generator, Linear, Parameter};

    /// Parameters by names of any kind.
    struct Model<T: Float>(Vec<(String, Parameter<T>)>);

    impl<T: Float> Module<T> for Model<T> {
        fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
            self.0.iter().for_each(|(name, parameter)| each(name, parameter));
        }

        fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
            self.0.iter_mut().for_each(|(name, parameter)| each(name, parameter));
        }
    }

    fn model<T: Float>(shapes: &[(&str, &[usize])]) -> Model<T> {
        Model(shapes.iter().map(|&(name, shape)| (name.to_owned(), Parameter::new(Tensor::zeros(shape)))).collect())
    }

    #[test]
    fn a_checkpoint_written_is_read_back_equal_and_writes_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let awkward = [f64::MIN_POSITIVE / 2.0, -0.0, 1.0 / 3.0, f64::INFINITY, f64::NAN, f64::MAX];
        let saved = Model(vec![
            ("b".to_owned(), Parameter::new(Tensor::from(awkward))),
            ("a".to_owned(), Parameter::new(Tensor::scalar(2.5))),
            ("empty".to_owned(), Parameter::new(Tensor::zeros([0, 3]))),
        ]);
        save(&saved, &first).unwrap();
        let mut loaded = model::<f64>(&[("b", &[6]), ("a", &[]), ("empty", &[0, 3])]);
        load(&mut loaded, &first).unwrap();
        let bits = |model: &Model<f64>| -> Vec<Vec<u64>> {
            model.0.iter().map(|(_, parameter)| parameter.value.iter().map(f64::to_bits).collect()).collect()
        };
        assert_eq!(bits(&loaded), bits(&saved));
        save(&loaded, &second).unwrap();
        assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
    }

    #[test]
    fn the_layout_is_pytorchs() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut layer = Linear::<f32>::new(3, 2, &mut Generator::new(0));
        layer.weight.value = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        save(&layer, &file).unwrap();
        let bytes = fs::read(&file).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let mut names = tensors.names();
        names.sort_unstable();
        assert_eq!(names, ["bias", "weight"]);
        let weight = tensors.tensor("weight").unwrap();
        assert_eq!((weight.dtype(), weight.shape()), (Dtype::F32, &[2, 3][..]));
        let expected: Vec<u8> = (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect();
        assert_eq!(weight.data(), expected);
    }

    #[test]
    fn a_checkpoint_of_another_model_lists_what_differs_and_changes_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut saved = model::<f32>(&[("fc1.weight", &[2, 3]), ("fc1.bias", &[2]), ("fc3.bias", &[1])]);
        saved.0[1].1.value = Tensor::from([1.0, 2.0]);
        save(&saved, &file).unwrap();
        let mut other = model::<f32>(&[("fc1.weight", &[3, 2]), ("fc1.bias", &[2]), ("fc2.bias", &[1])]);
        let error = load(&mut other, &file).unwrap_err();
        let text = error.to_string().replace(file.path().to_str().unwrap(), "f");
        assert_eq!(
            text,
            "'f' does not fit the model:\n  missing in the file: 'fc2.bias'\n  unexpected in the file: 'fc3.bias'\n  \
             mismatch: 'fc1.weight' is F32 [2, 3] in the file, F32 [3, 2] in the model"
        );
        assert_eq!(other.0[1].1.value.to_vec(), [0.0, 0.0]);
        let mut double = model::<f64>(&[("fc1.weight", &[2, 3]), ("fc1.bias", &[2]), ("fc3.bias", &[1])]);
        let Err(Error::Keys { mismatched, .. }) = load(&mut double, &file) else { panic!("f32 is not f64") };
        assert_eq!(mismatched.len(), 3);
    }

    #[test]
    fn damaged_files_and_equal_names_are_errors() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut saved = model::<f32>(&[("w", &[4])]);
        save(&saved, &file).unwrap();
        let whole = fs::read(&file).unwrap();
        for end in [0, 4, 20, whole.len() - 1] {
            fs::write(&file, &whole[..end]).unwrap();
            assert!(matches!(load(&mut saved, &file), Err(Error::Checkpoint { .. })), "{end}");
        }
        let twins = model::<f32>(&[("w", &[1]), ("w", &[1])]);
        assert!(matches!(save(&twins, &file), Err(Error::DuplicateName { .. })));
        assert!(matches!(load(&mut saved, "no/such/file"), Err(Error::Read { .. })));
    }

    /// The bytes of a file with such a header, and `size` zeros after it.
    fn with_header(header: &str, size: usize) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; size]].concat()
    }

    /// What `load` says of a file with such contents.
    fn refusal(contents: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, contents).unwrap();
        let error = load(&mut model::<f32>(&[("w", &[1])]), &file).unwrap_err();
        error.to_string().replace(file.path().to_str().unwrap(), "f")
    }

    #[test]
    fn headers_are_checked_before_anything_is_read() {
        let damaged = "'f' is not a safetensors checkpoint, or a damaged one: ";
        let w = r#""w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        let table = [
            (vec![0; 7], "it has 7 bytes, too few for the length of a header"),
            (vec![0xff; 9], "a header of 18446744073709551615 bytes, where the format allows 100000000"),
            (vec![9, 0, 0, 0, 0, 0, 0, 0, b'{', b'}'], "a header of 9 bytes in a file of 10"),
            (with_header(&format!("{{{w}}}"), 3), "the tensors of its header have 4 bytes, after it come 3"),
            (with_header(&format!("{{{w}}}"), 5), "the tensors of its header have 4 bytes, after it come 5"),
            (with_header(&format!("{{{w}}} {{}}"), 4), "trailing characters at line 1 column 56"),
            (with_header("[1]", 0), "invalid type: sequence, expected tensors by their names at line 1 column 0"),
            (
                with_header(&format!(r#"{{{w},"v":{{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}}}"#), 6),
                "invalid offset for tensor `v`",
            ),
        ];
        for (contents, expected) in table {
            assert_eq!(refusal(&contents).strip_prefix(damaged), Some(expected));
        }
        // A header alone is right where every tensor is empty, and its spaces do not matter.
        assert!(refusal(&with_header("{}   ", 0)).ends_with("missing in the file: 'w'"));
    }

    #[test]
    fn a_large_file_that_is_no_checkpoint_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let size = 1 << 40; // a hole: a file system need not keep it
        if file.as_file().set_len(size).is_ok() {
            let error = load(&mut model::<f32>(&[("w", &[1])]), &file).unwrap_err();
            assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
        }
        let error = load(&mut model::<f32>(&[]), "/dev/zero").unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error}");
    }

    #[test]
    fn two_tensors_of_one_name_are_an_error_that_names_it() {
        let entry = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
        let second = r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#;
        for (first, again) in [("w", "w"), ("w", r"\u0077"), (METADATA, METADATA)] {
            let text = refusal(&with_header(&format!(r#"{{"{first}":{entry},"{again}":{second}}}"#), 8));
            assert!(text.contains(&format!("two tensors are named '{first}'")), "{text}");
        }
        let error = save(&model::<f32>(&[("w", &[1]), ("w", &[2])]), "unused").unwrap_err();
        assert_eq!(error.to_string(), "two parameters of the model are named 'w'");
        let error = save(&model::<f32>(&[(METADATA, &[1])]), "unused").unwrap_err();
        assert!(error.to_string().starts_with("a parameter cannot be named '__metadata__'"), "{error}");
    }

    #[test]
    fn long_lists_and_long_names_are_shortened() {
        let names: Vec<String> = (0..20_000).map(|i| format!("empty{i:06}")).collect();
        let entries =
            names.iter().map(|name| format!(r#""{name}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#));
        let header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
        let text = refusal(&with_header(&header, 0));
        let expected = "'f' does not fit the model:\n  missing in the file: 'w'\n  unexpected in the file: 'empty000000', \
                        'empty000001', 'empty000002', 'empty000003', 'empty000004', 'empty000005', 'empty000006', \
                        'empty000007', 'empty000008', 'empty000009' and 19990 more";
        assert_eq!(text, expected);
        let name = "n".repeat(100_000);
        let header = format!(
            r#"{{"w":{{"dtype":"F32","shape":[{}0],"data_offsets":[0,0]}},"{name}":{{"dtype":"F32","#,
            "1,".repeat(10_000)
        ) + r#""shape":[0],"data_offsets":[0,0]}}"#;
        let text = refusal(&with_header(&header, 0));
        assert!(text.contains(&format!("'{}…'", "n".repeat(200))) && text.len() < 800, "{text}");
    }

    #[test]
    fn names_are_shown_with_their_control_characters_escaped() {
        let header = r#"{"\u001b[2J":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#;
        assert!(refusal(&with_header(header, 0)).ends_with(r"unexpected in the file: '\u{1b}[2J'"));
        let header = r#"{"w":{"dtype":"\u001b[2J","shape":[0],"data_offsets":[0,0]}}"#;
        assert!(refusal(&with_header(header, 0)).contains(r"unknown variant `\u{1b}[2J`"));
        let error = save(&model::<f32>(&[("a\nb", &[1]), ("a\nb", &[1])]), "unused").unwrap_err();
        assert_eq!(error.to_string(), r"two parameters of the model are named 'a\nb'");
    }
}
