#pragma once
// The tables of version 1. A change of meaning raises kSchemaVersion and adds a migration; there is
// none yet.

namespace ptxbench::store {

constexpr int kApplicationId = 0x70747862;  // "ptxb"

constexpr const char* kSchema = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE);
CREATE TABLE trajectories(
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES runs(id),
  model TEXT NOT NULL, arch TEXT NOT NULL, definition TEXT NOT NULL, workload TEXT NOT NULL,
  prompt TEXT NOT NULL, name TEXT NOT NULL,
  workload_name TEXT NOT NULL,
  UNIQUE(run, model, arch, definition, workload, prompt, name));
CREATE TABLE turns(
  trajectory INTEGER NOT NULL REFERENCES trajectories(id),
  turn INTEGER NOT NULL CHECK(turn >= 0),
  label TEXT NOT NULL, level INTEGER, reason TEXT NOT NULL, speedup REAL, tag TEXT NOT NULL,
  input_tokens INTEGER, output_tokens INTEGER, reasoning_tokens INTEGER,
  token_source TEXT NOT NULL,
  families TEXT NOT NULL,            -- JSON: name -> [sites, warps, threads], or ''
  PRIMARY KEY(trajectory, turn)) WITHOUT ROWID;
CREATE TABLE documents(
  trajectory INTEGER NOT NULL, turn INTEGER NOT NULL, kind TEXT NOT NULL,
  hash TEXT NOT NULL,                -- of the text
  size INTEGER NOT NULL,             -- of the text, bytes
  zstd BLOB NOT NULL,
  PRIMARY KEY(trajectory, turn, kind),
  FOREIGN KEY(trajectory, turn) REFERENCES turns(trajectory, turn));
CREATE TABLE problems(
  source TEXT NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL,
  count INTEGER NOT NULL, places TEXT NOT NULL,
  PRIMARY KEY(source, kind, detail));
)sql";

}  // namespace ptxbench::store
