//! The prelude of builds without the standard library. Each file that needs it imports it with a glob.

pub(crate) use alloc::borrow::ToOwned;
pub(crate) use alloc::boxed::Box;
pub(crate) use alloc::string::String;
pub(crate) use alloc::vec::Vec;
pub(crate) use alloc::{format, vec};

/// The methods of `f64` that `core` does not have.
pub(crate) trait Float {
    fn ceil(self) -> Self;
    fn exp(self) -> Self;
    fn exp2(self) -> Self;
    fn exp_m1(self) -> Self;
    fn floor(self) -> Self;
    fn ln(self) -> Self;
    fn ln_1p(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn powf(self, n: f64) -> Self;
    fn powi(self, n: i32) -> Self;
    fn round(self) -> Self;
    fn sqrt(self) -> Self;
}

impl Float for f64 {
    fn ceil(self) -> f64 {
        libm::ceil(self)
    }

    fn exp(self) -> f64 {
        libm::exp(self)
    }

    fn exp2(self) -> f64 {
        libm::exp2(self)
    }

    fn exp_m1(self) -> f64 {
        libm::expm1(self)
    }

    fn floor(self) -> f64 {
        libm::floor(self)
    }

    fn ln(self) -> f64 {
        libm::log(self)
    }

    fn ln_1p(self) -> f64 {
        libm::log1p(self)
    }

    fn log2(self) -> f64 {
        libm::log2(self)
    }

    fn log10(self) -> f64 {
        libm::log10(self)
    }

    fn powf(self, n: f64) -> f64 {
        libm::pow(self, n)
    }

    fn powi(self, n: i32) -> f64 {
        libm::pow(self, f64::from(n))
    }

    fn round(self) -> f64 {
        libm::round(self)
    }

    fn sqrt(self) -> f64 {
        libm::sqrt(self)
    }
}
