//go:build tools

// Package tools names the command whose dependencies go.sum records.
package tools

import _ "github.com/peak/s5cmd/v2"
