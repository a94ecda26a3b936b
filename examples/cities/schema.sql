-- SQLite schema for the data in this folder. Load country, then city, then
-- city_name, with PRAGMA foreign_keys = ON.

CREATE TABLE country (
  code TEXT PRIMARY KEY,
  name TEXT NOT NULL
);

CREATE TABLE city (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL,
  country    TEXT NOT NULL REFERENCES country(code),
  population INTEGER NOT NULL,
  latitude   REAL NOT NULL,
  longitude  REAL NOT NULL,
  timezone   TEXT
);

CREATE INDEX city_country ON city(country);

CREATE TABLE city_name (
  city_id INTEGER NOT NULL REFERENCES city(id) ON UPDATE CASCADE ON DELETE CASCADE,
  name    TEXT NOT NULL,
  PRIMARY KEY (city_id, name)
) WITHOUT ROWID;
