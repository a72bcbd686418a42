//! Reads fixtures: the values of layers, losses, optimisers and schedules that PyTorch computed. `tests/fixtures/README.md` describes the
//! files.

use std::path::PathBuf;
use std::sync::LazyLock;

use safetensors::{Dtype, SafeTensors};
use serde_json::Value;
use wengert::prelude::*;

/// The largest allowed difference from PyTorch in f64, relative to the largest element of the tensor.
pub const TOLERANCE: f64 = 1e-10;

static TENSORS: LazyLock<SafeTensors<'static>> = LazyLock::new(|| {
    let bytes = std::fs::read(path("nn.safetensors")).expect("nn.safetensors is beside the tests");
    SafeTensors::deserialize(bytes.leak()).expect("make_nn.py writes this format")
});

static INDEX: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(path("nn.json")).expect("nn.json is beside the tests");
    serde_json::from_str(&text).expect("make_nn.py writes JSON")
});

/// Returns the path of a file in `tests/fixtures`.
pub fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(file)
}

/// Returns the cases whose names begin with `prefix`, in alphabetical order.
pub fn cases(prefix: &str) -> Vec<Fixture> {
    let all = INDEX["cases"].as_object().expect("cases have names");
    all.keys().filter(|name| name.starts_with(prefix)).map(|name| fixture(name)).collect()
}

/// Returns one case by its name, for example `lstm/2_layers_bidirectional`.
#[track_caller]
pub fn fixture(name: &str) -> Fixture {
    let about = INDEX["cases"].get(name).unwrap_or_else(|| panic!("there is no case '{name}' in nn.json"));
    Fixture { name: name.to_owned(), about }
}

/// Returns the distribution of a layer's initial parameters: `initial("Linear")["parameters"]["weight"]["bound"]`.
pub fn initial(layer: &str) -> &'static Value {
    &INDEX["initial"][layer]
}

/// The tensors of one case, and the entry of the case in `nn.json`.
pub struct Fixture {
    /// The name of the case.
    pub name: String,
    /// The entry of the case in `nn.json`.
    pub about: &'static Value,
}

impl Fixture {
    /// Returns a tensor of the case in f64, for example `weight_ih_l0`, `input`, `output`, `upstream` or `grad.weight_ih_l0`.
    #[track_caller]
    pub fn get(&self, tensor: &str) -> Tensor<f64> {
        self.read(tensor, Dtype::F64, f64::from_le_bytes)
    }

    /// Returns a tensor of i64, for example `lengths` or the target of a classification loss.
    #[track_caller]
    pub fn integers(&self, tensor: &str) -> Tensor<i64> {
        self.read(tensor, Dtype::I64, i64::from_le_bytes)
    }

    /// Returns a tensor of booleans, for example `attn_mask`.
    #[track_caller]
    pub fn mask(&self, tensor: &str) -> Tensor<bool> {
        self.read(tensor, Dtype::BOOL, |[byte]: [u8; 1]| byte != 0)
    }

    /// Returns true if the case has this tensor.
    pub fn has(&self, tensor: &str) -> bool {
        TENSORS.tensor(&self.key(tensor)).is_ok()
    }

    /// Returns an option of the case by its PyTorch name.
    #[track_caller]
    pub fn option(&self, name: &str) -> &'static Value {
        self.about["options"].get(name).unwrap_or_else(|| panic!("{}: there is no option '{name}'", self.name))
    }

    /// Returns an option of the case that is a number.
    #[track_caller]
    pub fn number(&self, name: &str) -> f64 {
        self.option(name).as_f64().unwrap_or_else(|| panic!("{}: '{name}' is no number", self.name))
    }

    /// Panics if `found` differs from the tensor of this name by more than [`TOLERANCE`].
    #[track_caller]
    pub fn check(&self, tensor: &str, found: &Tensor<f64>) {
        let expected = self.get(tensor);
        assert_eq!(found.shape(), expected.shape(), "{}", self.key(tensor));
        let scale = expected.iter().fold(0.0, |scale: f64, x| scale.max(x.abs()));
        for (position, (found, expected)) in found.iter().zip(expected.iter()).enumerate() {
            let off = (found - expected).abs();
            assert!(
                off <= TOLERANCE * scale,
                "{}, element {position}: {found} instead of {expected}",
                self.key(tensor)
            );
        }
    }

    fn key(&self, tensor: &str) -> String {
        format!("{}/{tensor}", self.name)
    }

    #[track_caller]
    fn read<T: Element, const N: usize>(&self, tensor: &str, dtype: Dtype, read: fn([u8; N]) -> T) -> Tensor<T> {
        let key = self.key(tensor);
        let view = TENSORS.tensor(&key).unwrap_or_else(|_| panic!("there is no tensor '{key}' in nn.safetensors"));
        assert_eq!(view.dtype(), dtype, "{key}");
        let (chunks, _) = view.data().as_chunks();
        Tensor::from_vec(chunks.iter().map(|&chunk| read(chunk)).collect(), view.shape())
    }
}

#[test]
fn every_case_has_tensors_and_every_tensor_a_case() {
    let names = TENSORS.names();
    let known = cases("");
    assert!(known.len() > 400);
    for case in &known {
        let prefix = format!("{}/", case.name);
        assert!(names.iter().any(|name| name.starts_with(&prefix)), "{prefix}");
    }
    for name in names.iter().filter(|name| !name.starts_with("optimizer/problem/")) {
        let (case, _) = name.rsplit_once('/').unwrap();
        assert!(known.iter().any(|known| known.name == case), "{name}");
    }
    let lstm = fixture("lstm/2_layers_bidirectional_lengths");
    assert_eq!(lstm.get("weight_ih_l1_reverse").shape(), &[16, 8]);
    assert_eq!(lstm.integers("lengths"), Tensor::from([3, 5, 1]));
    assert!(lstm.has("grad.h_0") && !lstm.has("grad.lengths"));
    assert_eq!(fixture("multihead_attention/causal").mask("attn_mask").select(0, 3).to_vec()[3..], [false, true]);
    assert_eq!(initial("Linear")["parameters"]["weight"]["bound"], 0.25);
}

#[test]
#[should_panic(expected = "linear/plain/bias, element 0: ")]
fn a_difference_is_found() {
    let case = fixture("linear/plain");
    case.check("weight", &case.get("weight"));
    case.check("bias", &(case.get("bias") * (1.0 + 3e-10)));
}
