//! The bytes of a checkpoint: a file, or a vector in memory. Tensors are read one at a time.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::Arc;

use safetensors::tensor::TensorInfo;

/// The bytes of a checkpoint. Clones share the bytes.
#[derive(Clone)]
pub(super) enum Contents {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

impl Contents {
    /// Reads the bytes of the tensor that `info` describes. `start` is the position where the tensors begin. A tensor has at most the size
    /// of the file. For a model, the caller has compared the tensor's shape with the model's shape. So a damaged file cannot make the
    /// program request too much memory.
    pub(super) fn read_tensor(&self, start: u64, info: &TensorInfo) -> io::Result<Vec<u8>> {
        match self {
            Contents::File(file) => read_range(&**file, start, info),
            Contents::Memory(bytes) => read_range(Cursor::new(bytes), start, info),
        }
    }
}

/// Reads the bytes of a tensor from `from`, as [`Contents::read_tensor`] documents.
fn read_range(mut from: impl Read + Seek, start: u64, info: &TensorInfo) -> io::Result<Vec<u8>> {
    let (first, end) = info.data_offsets;
    let (size, mut bytes) = (end - first, Vec::new());
    bytes.try_reserve_exact(size)?;
    bytes.resize(size, 0);
    from.seek(SeekFrom::Start(start + first as u64))?;
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
