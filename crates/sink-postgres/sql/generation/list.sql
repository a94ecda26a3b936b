SELECT generation FROM {marks} ORDER BY generation
