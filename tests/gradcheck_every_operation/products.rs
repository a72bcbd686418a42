//! Matrix products and other contractions.

use wengert::prelude::*;
use wengert::tensor::ops::{Blas, Contractions, LinearMaps, Products, Softmax, Vectors, einsum};

use super::grid::REAL;
use super::row::{Row, of};

pub const SHAPED: &[Row] = of! {
    matmul "vectors": REAL [3] [3] => |x, y| x.matmul(&y);
    matmul "matrix and vector": REAL [2, 3] [3] => |x, y| x.matmul(&y);
    matmul "vector and matrix": REAL [3] [3, 2] => |x, y| x.matmul(&y);
    matmul "matrices": REAL [2, 3] [3, 2] => |x, y| x.matmul(&y);
    matmul "transposed": REAL [3, 2] [2, 3] => |x, y| x.t().matmul(&y.t());
    matmul "expanded": REAL [3] [3, 1] => |x, y| x.expand([2, 3]).matmul(&y.expand([3, 2]));
    matmul "batch and matrix": REAL [2, 2, 3] [3, 2] => |x, y| x.matmul(&y);
    matmul "batches that broadcast": REAL [2, 1, 1, 2] [3, 2, 1] => |x, y| x.matmul(&y);
    matmul "batches of 1 and 0": REAL [1, 2, 2] [0, 2, 2] => |x, y| x.matmul(&y);
    matmul "nothing in between": REAL [2, 0] [0, 3] => |x, y| x.matmul(&y);
    matmul "no rows": REAL [0, 2] [2, 3] => |x, y| x.matmul(&y);
    matmul "with itself": REAL [3, 3] => |x| x.matmul(&x).matmul(&x);
    matmul "in a layer": REAL [2, 3] [4, 3] [4] => |x, w, b| (x.matmul(&w.t()) + b).tanh();
    matmul "in attention": REAL [2, 3] [2, 3] [2, 2] => |q, k, v| q.matmul(&k.t()).softmax(-1).matmul(&v);
    mm: REAL [2, 3] [3, 2] => |x, y| x.mm(&y);
    bmm: REAL [2, 1, 3] [2, 3, 2] => |x, y| x.bmm(&y);
    mv: REAL [2, 3] [3] => |x, y| x.mv(&y);
    dot: REAL [3] [3] => |x, y| x.dot(&y);
    addmm: REAL [2] [3, 2] [2, 2] => |x, y, z| x.addmm(&y, &z, 0.5, 1.5);
    addmm "without itself": REAL [2] [3, 2] [2, 2] => |x, y, z| x.addmm(&y, &z, 0, 1);
    addmv: REAL [1] [3, 2] [2] => |x, y, z| x.addmv(&y, &z, 0.5, 1.5);
    baddbmm: REAL [3, 1] [2, 3, 1] [2, 1, 2] => |x, y, z| x.baddbmm(&y, &z, 0.5, 1.5);
    addbmm: REAL [2] [2, 3, 1] [2, 1, 2] => |x, y, z| x.addbmm(&y, &z, 0.5, 1.5);
    addr: REAL [3, 1] [3] [2] => |x, y, z| x.addr(&y, &z, 0.5, 1.5);
    addmm_: REAL [3, 2] [3, 2] [2, 2] => |x, y, z| {
        let mut x = x;
        x.addmm_(&y, &z, 0.5, 1.5);
        x
    };
    addmv_: REAL [3] [3, 2] [2] => |x, y, z| {
        let mut x = x;
        x.addmv_(&y, &z, 0.5, 1.5);
        x
    };
    baddbmm_: REAL [2, 3, 2] [2, 3, 1] [2, 1, 2] => |x, y, z| {
        let mut x = x;
        x.baddbmm_(&y, &z, 0.5, 1.5);
        x
    };
    addbmm_: REAL [3, 2] [2, 3, 1] [2, 1, 2] => |x, y, z| {
        let mut x = x;
        x.addbmm_(&y, &z, 0.5, 1.5);
        x
    };
    addr_: REAL [3, 2] [3] [2] => |x, y, z| {
        let mut x = x;
        x.addr_(&y, &z, 0.5, 1.5);
        x
    };
    outer: REAL [3] [2] => |x, y| x.outer(&y);
    outer "with itself": REAL [3] => |x| x.outer(&x);
    inner: REAL [2, 3] [4, 3] => |x, y| x.inner(&y);
    vecdot: REAL [2, 3] [3] => |x, y| x.vecdot(&y, -1);
    cross: REAL [2, 3] [1, 3] => |x, y| x.cross(&y, -1);
    kron: REAL [2, 1] [2, 2] => |x, y| x.kron(&y);
    trace: REAL [3, 2] => |x| x.exp().trace();
    tensordot: REAL [2, 3, 2] [3, 2, 2] => |x, y| x.tensordot(&y, 2);
    tensordot "named dimensions": REAL [2, 3] [2, 3] => |x, y| x.tensordot(&y, ([0], [0]));
    einsum: REAL [2, 3] [3, 2] => |x, y| einsum("ij,jk->ik", &[x, y]);
    einsum "diagonal, batch and ellipsis": REAL [2, 2, 3] [1, 3] => |x, y| einsum("ii...,b...->bi", &[x, y]);
    linear: REAL [2, 3] [4, 3] [4] => |x, w, b| x.linear(&w, Some(&b));
    linear "a vector, no bias": REAL [3] [2, 3] => |x, w| x.linear(&w, None);
    bilinear: REAL [2, 2] [2, 3] [2, 2, 3] [2] => |x, y, w, b| x.bilinear(&y, &w, Some(&b));
};
