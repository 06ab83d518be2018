//! canon
