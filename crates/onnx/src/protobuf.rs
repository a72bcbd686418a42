//! Writes the wire format of Protocol Buffers: numbers as varints, and texts, bytes and messages with their lengths.
//!
//! An ONNX file needs only this part of the format, and this crate only writes. So these few functions take the place of a library for
//! Protocol Buffers, whose generated types of ONNX would take longer to compile than this crate. The format is described at
//! <https://protobuf.dev/programming-guides/encoding/>.

/// The wire type of a varint.
const VARINT: u64 = 0;

/// The wire type of bytes that follow their length.
const BYTES: u64 = 2;

/// The fields of a message, encoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Reserves memory for `bytes` more bytes, or returns false if there is not enough.
    pub(crate) fn try_reserve(&mut self, bytes: usize) -> bool {
        self.0.try_reserve(bytes).is_ok()
    }

    /// Appends a field with a number.
    pub(crate) fn put_number(&mut self, field: u64, value: u64) {
        self.put_varint(field << 3 | VARINT);
        self.put_varint(value);
    }

    /// Appends a field with a number that may be negative. A negative number takes ten bytes.
    pub(crate) fn put_integer(&mut self, field: u64, value: i64) {
        self.put_number(field, value as u64);
    }

    /// Appends a field with bytes.
    pub(crate) fn put_bytes(&mut self, field: u64, bytes: &[u8]) {
        self.put_varint(field << 3 | BYTES);
        self.put_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Appends a field with a text.
    pub(crate) fn put_text(&mut self, field: u64, text: &str) {
        self.put_bytes(field, text.as_bytes());
    }

    /// Appends a field with a message.
    pub(crate) fn put_message(&mut self, field: u64, message: &Message) {
        self.put_bytes(field, &message.0);
    }

    /// Returns the number of bytes of the encoded fields.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the encoded fields.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Appends a number, seven bits per byte, with the lowest bits first. The highest bit of a byte is set if another byte follows.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// Compares encoded fields with the examples in the description of Protocol Buffers' format.
    #[test]
    fn fields_have_the_bytes_of_the_description() {
        let (mut outer, mut inner) = (Message::default(), Message::default());
        inner.put_number(1, 150);
        assert_eq!(inner.0, [0x08, 0x96, 0x01]);
        outer.put_text(2, "testing");
        outer.put_message(3, &inner);
        assert_eq!(outer.0[..9], [0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g']);
        assert_eq!(outer.0[9..], [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = Message::default();
        negative.put_integer(1, -2);
        assert_eq!(negative.0, [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}
