//! Reads and checks the header of a safetensors file before the rest of the file is read.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read};

use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};

/// The name of the header's entry for metadata, which does not describe a tensor.
pub(super) const METADATA: &str = "__metadata__";

/// The largest length of a header that the format allows, in bytes.
const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The number of bytes at the beginning of a file that hold the length of the header.
const LENGTH_BYTES: u64 = 8;

/// Reads the header of a checkpoint of `size` bytes, and nothing after it. Returns the position where the tensors
/// begin, and the header. If the size or the header is not valid, returns a description of the problem as the inner
/// error. The outer error is that the file cannot be read.
///
/// The tensors of a valid header cover the rest of the file without overlap.
pub(super) fn read_header(file: &mut dyn Read, size: u64) -> io::Result<std::result::Result<(u64, Metadata), String>> {
    if size < LENGTH_BYTES {
        return Ok(Err(format!("its {size} bytes are too few for the length of a header")));
    }
    let mut length = [0; LENGTH_BYTES as usize];
    file.read_exact(&mut length)?;
    let (first_bytes, length) = (length, u64::from_le_bytes(length));
    if length > MAX_HEADER_BYTES {
        return Ok(Err(if begins_as_torch_save(&first_bytes) {
            let hint =
                "`safetensors.torch.save_file(model.state_dict(), path)` in Python writes a file that loads here";
            format!("it is a file of `torch.save` (.pt, .pth); {hint}")
        } else {
            format!("a header of {length} bytes, but the format allows {MAX_HEADER_BYTES}")
        }));
    }
    let start = LENGTH_BYTES + length;
    if start > size {
        return Ok(Err(format!("a header of {length} bytes in a file of {size}")));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let parse = || {
        let mut json = serde_json::Deserializer::from_slice(&header);
        let mut tensors = json.deserialize_map(EntriesVisitor).map_err(|error| error.to_string())?;
        json.end().map_err(|error| error.to_string())?;
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        let header = Metadata::new(None, tensors).map_err(|error| error.to_string())?;
        let (expected, found) = (header.data_len() as u64, size - start);
        if expected != found {
            return Err(format!("the tensors of its header have {expected} bytes, but {found} bytes follow it"));
        }
        Ok((start, header))
    };
    Ok(parse())
}

/// Returns true if `first_bytes`, the beginning of a file, can be the beginning of a file of `torch.save`. Such a file is a ZIP archive, or a
/// pickle in one of the protocols 2 to 5. The caller has checked that `first_bytes` is not a valid length of a header. Some valid lengths
/// have the same first bytes.
fn begins_as_torch_save(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(b"PK\x03\x04") || matches!(first_bytes, [0x80, 2..=5, ..])
}

/// A visitor that collects the tensors of a header in order. It returns an error for a repeated name, where a map would silently keep only
/// one of the entries.
struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
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
                return Err(A::Error::custom(format!("two tensors have the name '{name}'")));
            }
        }
        Ok(tensors)
    }
}
