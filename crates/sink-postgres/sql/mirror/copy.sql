COPY {mirror} (_key, _rules, _version, {names}) FROM STDIN
