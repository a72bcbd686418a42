//! The families of distributions of one variable. Each family has its parameters, its support and its formulas.

pub(crate) mod counts;
pub(crate) mod exponential;
pub(crate) mod gamma;
pub(crate) mod normal;
pub(crate) mod student;
pub(crate) mod trials;
pub(crate) mod uniform;

/// The number ln √(2π), the constant term in the logarithm of the normal density.
pub(crate) const LN_SQRT_2PI: f64 = 0.918_938_533_204_672_8;
/// The Euler-Mascheroni constant γ.
pub(crate) const EULER: f64 = 0.577_215_664_901_532_9;

/// Defines a distribution with its parameters and their ranges.
macro_rules! family {
    ($(#[$doc:meta])* $name:ident { $first:ident: $first_range:ident $(, $rest:ident: $range:ident)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<A> {
            pub(crate) $first: A,
            $(pub(crate) $rest: A,)*
            pub(crate) validated: bool,
        }

        #[wengert_macros::twins]
        impl<A: wengert_special::Array> $name<A> {
            /// Returns the distribution with these parameters, whose shapes broadcast. Call [`validate`](crate::Validate::validate) to
            /// check their values.
            ///
            /// # Errors
            ///
            /// If the shapes do not broadcast.
            pub fn try_new(
                $first: impl wengert_tensor::ops::IntoArray<Array = A>
                $(, $rest: impl wengert_tensor::ops::Operand<A>)*
            ) -> wengert_tensor::ops::Result<Self, A::Error> {
                let at = wengert_tensor::Site::here("new");
                let $first = $first.array();
                $(let $rest = crate::distribution::to_array($rest, &$first)?;)*
                let _ = crate::support::broadcast_shape::<A::Error>(&[$first.shape() $(, $rest.shape())*], at)?;
                Ok($name { $first $(, $rest)*, validated: false })
            }
        }

        impl<A: wengert_special::Array> $name<A> {
            crate::families::accessor!($first);
            $(crate::families::accessor!($rest);)*

            fn ranges(&self) -> Vec<crate::support::Parameter<'_, A>> {
                vec![
                    (stringify!($first), crate::support::ParameterRange::$first_range, &self.$first),
                    $((stringify!($rest), crate::support::ParameterRange::$range, &self.$rest),)*
                ]
            }
        }
    };
}

/// Defines the method that returns a parameter.
macro_rules! accessor {
    ($name:ident) => {
        #[doc = concat!("Returns the parameter `", stringify!($name), "`.")]
        pub fn $name(&self) -> &A {
            &self.$name
        }
    };
}

/// Defines the members of `Family` that are the same for all distributions that `family!` defines.
macro_rules! members {
    ($name:literal) => {
        type Array = A;

        const NAME: &'static str = $name;

        fn parameters(&self) -> Vec<crate::support::Parameter<'_, A>> {
            self.ranges()
        }

        fn is_validated(&self) -> bool {
            self.validated
        }

        fn validated(self) -> Self {
            Self { validated: true, ..self }
        }
    };
}

pub(crate) use {accessor, family, members};
